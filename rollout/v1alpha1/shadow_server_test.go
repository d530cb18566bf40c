// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A step is one write on the way to a state: of the spec or of the status.
type step struct{ part, patch string }

func orders(fields string) step { return step{"spec", `{"spec":{` + fields + `}}`} }
func report(fields string) step { return step{"status", `{"status":{` + fields + `}}`} }

const (
	v2 = `"revision":{"name":"v2","digest":"sha256:22"}`
	v3 = `"revision":{"name":"v3","digest":"sha256:33"}`
)

// shadowStates are objects of which rows try to make something else. Each goes on from another one.
func shadowStates() []struct {
	name, after string
	step        step
} {
	return []struct {
		name, after string
		step        step
	}{
		{"new", "", step{}},
		{"talking", "new", report(`"attempt":2,"phase":"Done"`)},
		{"known", "new", report(`"known":true`)},
		{"granted", "known", orders(`"grant":5,` + v2)},
		{"committed", "granted", report(`"attempt":5,"phase":"Committed",` + v2)},
		{"proceeding", "committed", orders(`"proceed":5`)},
		{"undoing", "committed", orders(`"undo":5`)},
		{"applying", "proceeding", report(`"phase":"Applying"`)},
		{"broken", "applying", report(`"phase":"FailedBroken"`)},
		{"verifying", "applying", report(`"phase":"Verifying"`)},
		{"done", "verifying", report(`"phase":"Done"`)},
		{"undone", "undoing", report(`"phase":"Undone"`)},
		{"regranted", "done", orders(`"grant":7,` + v3)},
		{"regranted-committed", "committed", orders(`"grant":7,` + v3)},
		{"regranted-broken", "broken", orders(`"grant":7,` + v3)},
		{"recommitted-broken", "regranted-broken", report(`"attempt":7,"phase":"Committed","broken":true,` + v3)},
		{"undoing-broken", "recommitted-broken", orders(`"undo":7`)},
		{"revoked", "granted", orders(`"revoked":5`)},
	}
}

func (s served) play(step step, name string, dry []string) error {
	s.t.Helper()
	if step.part == "status" {
		return s.merge(name, step.patch, dry, "status")
	}
	return s.merge(name, step.patch, dry)
}

// makeShadows stores one object for each state, by writes that the server has to accept.
func makeShadows(s served) {
	s.t.Helper()
	ways := map[string][]step{}
	for _, state := range shadowStates() {
		way := append([]step(nil), ways[state.after]...)
		if state.after != "" {
			way = append(way, state.step)
		}
		ways[state.name] = way
		s.must(s.create(state.name, `{"nodeUID":"u-1","revoked":3}`))
		for _, w := range way {
			s.must(s.play(w, state.name, nil))
		}
	}
}

const (
	never   = "must not decrease, nor be left out"
	follows = "the phase doesn't follow the one before"
	grants  = "a grant names a revision, and is above what was revoked and what the agent has answered"
	begins  = "an attempt begins with Committed or Refused, when the one before has ended"
	answers = "the agent can answer only the attempt that is granted and not revoked, with its revision"
	heeds   = "a committed attempt is begun after the word to proceed, and given up after the word to undo it"
	going   = "proceed grows only to the attempt that the agent has committed"
	undoing = "undo grows only to the attempt that the agent has committed"
	within  = "revision and broken must not change within an attempt"
	broken  = "broken says whether the node was broken when the attempt was committed"
	with    = "revision and revert change only together with a higher grant"
)

// orderRows are what controllers might write, and what the server says to it.
func orderRows() []struct {
	state, name string
	step        step
	want        string
} {
	return []struct {
		state, name string
		step        step
		want        string
	}{
		{"committed", "nothing", orders(``), ""},
		{"known", "stage", orders(`"stage":{"name":"v9"}`), ""},
		{"known", "other node", orders(`"nodeUID":"u-2"`), "nodeUID must not change"},
		{"known", "other domain", orders(`"domain":"d-2"`), "domain must not change"},
		{"known", "no node", orders(`"nodeUID":null`), "nodeUID: Required value"},
		{"known", "negative grant", orders(`"grant":-1`), "should be greater than or equal to 0"},
		{"known", "name with @", orders(`"stage":{"name":"v9@x"}`), "should match"},
		{"known", "no spec", step{"spec", `{"spec":null}`}, "spec: Required value"},
		// An omission is a decrease.
		{"granted", "grant decreases", orders(`"grant":4`), "grant " + never},
		{"done", "grant left out", orders(`"grant":null,"revision":{"name":"v2","digest":"sha256:22"}`), "grant " + never},
		{"known", "revoked decreases", orders(`"revoked":2`), "revoked " + never},
		{"known", "revoked left out", orders(`"revoked":null`), "revoked " + never},
		{"proceeding", "proceed decreases", orders(`"proceed":0`), going},
		{"done", "proceed left out", orders(`"proceed":null`), going},
		{"proceeding", "proceed for nothing", orders(`"proceed":null,"revert":false`), going},
		{"undoing", "undo decreases", orders(`"undo":1`), undoing},
		{"undone", "undo left out", orders(`"undo":null`), undoing},
		// Grants.
		{"new", "grant before the agent has spoken", orders(`"grant":5,` + v2), ""},
		{"known", "grant without revision", orders(`"grant":5`), grants},
		{"known", "grant of what is revoked", orders(`"grant":3,` + v2), grants},
		{"known", "grant and revoked at once", orders(`"grant":5,"revoked":5,` + v2), grants},
		{"broken", "retry", orders(`"grant":6,"revert":true,"revision":{"name":"v1"}`), ""},
		{"granted", "other revision", orders(v3), with},
		{"granted", "other digest", orders(`"revision":{"digest":"sha256:23"}`), with},
		{"granted", "no digest", orders(`"revision":{"digest":null}`), with},
		{"granted", "no revision", orders(`"revision":null`), with},
		{"granted", "turned round", orders(`"revert":true`), with},
		// Revocation.
		{"granted", "revoke", orders(`"revoked":5`), ""},
		{"granted", "revoke far ahead", orders(`"revoked":4294967296`), ""},
		{"committed", "revoke what is committed", orders(`"revoked":5`), "what the agent has answered can't be revoked"},
		{"regranted-committed", "revoke the next", orders(`"revoked":7`), ""},
		// Proceed and undo.
		{"committed", "proceed", orders(`"proceed":5`), ""},
		{"committed", "undo", orders(`"undo":5`), ""},
		{"granted", "proceed before the commit", orders(`"proceed":5`), going},
		{"committed", "proceed with another attempt", orders(`"proceed":4`), going},
		{"regranted-committed", "proceed with the next attempt", orders(`"proceed":7`), going},
		{"applying", "proceed again", orders(`"proceed":6`), going},
		{"undoing", "proceed after undo", orders(`"proceed":5`), going},
		{"committed", "both at once", orders(`"proceed":5,"undo":5`), going},
		{"granted", "undo before the commit", orders(`"undo":5`), undoing},
		{"proceeding", "undo after proceed", orders(`"undo":5`), undoing},
		{"done", "undo what is done", orders(`"undo":5`), undoing},
	}
}

// reportRows are what agents might write.
func reportRows() []struct {
	state, name string
	step        step
	want        string
} {
	return []struct {
		state, name string
		step        step
		want        string
	}{
		{"new", "from the disk", report(`"known":true,"attempt":2,"phase":"FailedBroken",` + v2), ""},
		{"committed", "words", report(`"reason":"Waiting","message":"for the drain","current":{"name":"v1"},"bootID":"b"`), ""},
		{"known", "unknown phase", report(`"phase":"Resting"`), "Unsupported value"},
		// An omission is a decrease, also of the whole status.
		{"new", "no status", step{"status", `{"status":null}`}, ""},
		{"known", "no status any more", step{"status", `{"status":null}`}, "known must stay true"},
		{"done", "no status any more", step{"status", `{"status":null}`}, "the attempt " + never},
		{"talking", "attempt decreases", report(`"attempt":1`), "the attempt " + never},
		{"done", "attempt decreases", report(`"attempt":4`), "the attempt " + never},
		{"done", "attempt left out", report(`"attempt":null`), "the attempt " + never},
		{"done", "forgets", report(`"known":null`), "known must stay true"},
		// Commits.
		{"granted", "commit", report(`"attempt":5,"phase":"Committed",` + v2), ""},
		{"granted", "refuse", report(`"attempt":5,"phase":"Refused",` + v2), ""},
		{"revoked", "commit of what is revoked", report(`"attempt":5,"phase":"Committed",` + v2), answers},
		{"known", "commit without grant", report(`"attempt":5,"phase":"Committed",` + v2), answers},
		{"granted", "commit of another attempt", report(`"attempt":4,"phase":"Committed",` + v2), answers},
		{"granted", "commit of another revision", report(`"attempt":5,"phase":"Committed",` + v3), answers},
		{"granted", "commit of no revision", report(`"attempt":5,"phase":"Committed"`), answers},
		{"granted", "done at once", report(`"attempt":5,"phase":"Done",` + v2), begins},
		{"granted", "no phase", report(`"attempt":5,` + v2), begins},
		{"regranted", "commit of the next", report(`"attempt":7,"phase":"Committed",` + v3), ""},
		{"regranted-broken", "commit of a broken node", report(`"attempt":7,"phase":"Committed","broken":true,` + v3), ""},
		{"regranted-broken", "commit as if it were well", report(`"attempt":7,"phase":"Committed",` + v3), broken},
		{"regranted", "commit as if it were broken", report(`"attempt":7,"phase":"Committed","broken":true,` + v3), broken},
		{"regranted-broken", "refusal of a broken node", report(`"attempt":7,"phase":"Refused",` + v3), begins},
		{"regranted-committed", "commit before the end", report(`"attempt":7,"phase":"Committed",` + v3), begins},
	}
}

// phaseRows are what agents might write of the attempt at hand.
func phaseRows() []struct {
	state, name string
	step        step
	want        string
} {
	return []struct {
		state, name string
		step        step
		want        string
	}{
		{"committed", "other revision", report(v3), within},
		{"committed", "broken later", report(`"broken":true`), within},
		{"undoing-broken", "as it was", report(`"phase":"FailedBroken"`), ""},
		{"undoing-broken", "as if it were well", report(`"phase":"Undone"`), heeds},
		{"undoing", "as if it were broken", report(`"phase":"FailedBroken"`), heeds},
		{"recommitted-broken", "broken without a word", report(`"phase":"FailedBroken"`), heeds},
		{"proceeding", "apply", report(`"phase":"Applying"`), ""},
		{"proceeding", "told by the disk", report(`"phase":"Done"`), ""},
		{"undoing", "undone", report(`"phase":"Undone"`), ""},
		{"committed", "apply without a word", report(`"phase":"Applying"`), heeds},
		{"committed", "undone without a word", report(`"phase":"Undone"`), heeds},
		{"undoing", "apply after undo", report(`"phase":"Applying"`), heeds},
		{"proceeding", "undone after proceed", report(`"phase":"Undone"`), heeds},
		{"proceeding", "refused after the commit", report(`"phase":"Refused"`), follows},
		{"proceeding", "no phase any more", report(`"phase":null`), follows},
		{"applying", "verifying", report(`"phase":"Verifying"`), ""},
		{"applying", "undone", report(`"phase":"Undone"`), follows},
		{"verifying", "back", report(`"phase":"Applying"`), follows},
		{"broken", "comes back", report(`"phase":"Verifying"`), ""},
		{"done", "verifying again", report(`"phase":"Verifying"`), follows},
		{"done", "committed again", report(`"phase":"Committed"`), follows},
		{"known", "committed nothing", report(`"phase":"Committed"`), follows},
	}
}

// The server enforces of the protocol what one object shows: R-RO-01, R-RO-19. Each rule is the only one that refuses some row.
func TestServerChecksShadows(t *testing.T) {
	s := serve(t, v1alpha1.NodeShadowKind, v1alpha1.NodeShadowsResource)
	makeShadows(s)
	alone := sole{}
	for _, c := range slices.Concat(orderRows(), reportRows(), phaseRows()) {
		t.Run(c.state+"/"+c.name, func(t *testing.T) { alone.judge(t, s.play(c.step, c.state, dryRun), c.want) })
	}
	const fresh = "a new shadow grants nothing"
	for _, c := range []struct{ name, spec, want string }{
		{"revoked", `{"nodeUID":"u-1","revoked":9}`, ""},
		{"granted", `{"nodeUID":"u-1","grant":1,` + v2 + `}`, fresh},
		{"proceed", `{"nodeUID":"u-1","proceed":1}`, fresh},
		{"undo", `{"nodeUID":"u-1","undo":1}`, fresh},
		{"no uid", `{}`, "nodeUID: Required value"},
		{"empty uid", `{"nodeUID":""}`, "at least 1 chars long"},
	} {
		t.Run("create/"+c.name, func(t *testing.T) { alone.judge(t, s.create("created", c.spec, dryRun...), c.want) })
	}
	alone.each(t, v1alpha1.NodeShadowKind)
}
