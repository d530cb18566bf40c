// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// statusOf is the status that remembers a progress, going on from one before.
func statusOf(t *testing.T, before v1alpha1.RolloutStatus, p rollout.Progress) v1alpha1.RolloutStatus {
	t.Helper()
	r := rolloutOf(t, "")
	r.Status = before
	s, _ := v1alpha1.StatusOf(r, v1alpha1.Observed{
		Policy: rollout.Policy{UID: "uid-r", Target: inPolicy("v2")}, Decisions: rollout.Decisions{Phase: rollout.Running, Progress: p},
	}, epoch())
	return s
}

func epoch() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// odd are texts that need care.
func odd() []string {
	return []string{"", " ", "#1", `"`, "a b", "a=b", "ünï", "x\ny", "\xff\x00", "gzip:AAAA", "ip-10-0-0-1.example.com", "-", "0"}
}

// A maker makes random progress.
type maker struct{ *rand.Rand }

func (m maker) text() string {
	if m.IntN(3) == 0 {
		return odd()[m.IntN(len(odd()))]
	}
	return fmt.Sprintf("%08x-%04x", m.Uint32(), m.IntN(1<<16))
}

func (m maker) some(f func()) {
	if m.IntN(2) == 0 {
		f()
	}
}

func (m maker) time() (t time.Time) {
	m.some(func() { t = time.Unix(m.Int64N(4e9)-1e9, m.Int64N(1e9)).UTC() })
	return t
}

func (m maker) progress() rollout.Progress {
	p := rollout.Progress{Nodes: map[string]rollout.NodeProgress{}}
	results := []rollout.Result{
		"", rollout.Succeeded, rollout.Refused, rollout.Deferred, rollout.Undone,
		rollout.FailedClean, rollout.FailedBroken, rollout.Suspected, rollout.Lost,
	}
	for range m.IntN(4) {
		p.Targets = append(p.Targets, protocol.Revision{Name: plain(m.text()), Digest: plain(m.text())})
		p.Lifted = append(p.Lifted, plain(m.text()))
		p.Cycles = append(p.Cycles, time.Duration(m.Int64()-m.Int64()))
	}
	seen := map[string]bool{}
	for range m.IntN(200) {
		if uid := m.text(); !seen[uid] {
			seen[uid] = true
			p.Members = append(p.Members, uid)
		}
	}
	uid := func() string {
		if len(p.Members) > 0 && m.IntN(3) > 0 {
			return p.Members[m.IntN(len(p.Members))]
		}
		return m.text()
	}
	for range m.IntN(200) {
		o := rollout.Outcome{Node: m.text(), UID: uid(), Result: results[m.IntN(len(results))], At: m.time()}
		p.Outcomes = append(p.Outcomes, o)
		m.some(func() { p.Outcomes = append(p.Outcomes, rollout.Outcome{UID: uid(), At: o.At}) })
	}
	for range m.IntN(50) {
		e := rollout.NodeProgress{Since: m.time(), Admitted: m.time(), NotBefore: m.time(), Result: results[m.IntN(len(results))]}
		m.some(func() { e.Node, e.State = m.text(), protocol.States()[m.IntN(len(protocol.States()))] })
		m.some(func() {
			e.Attempt, e.Attempts, e.Deferrals, e.Stage = protocol.Attempt(m.Int64()), m.IntN(9), m.IntN(9), m.IntN(4)
		})
		m.some(func() { e.Critical, e.Failed = true, m.IntN(2) == 0 })
		m.some(func() { e.Accepted, e.Recovered = true, m.IntN(2) == 0 })
		p.Nodes[uid()] = e
	}
	m.some(func() { p.Stage, p.StageFrom, p.Accepted, p.Promoted = m.IntN(9), m.IntN(9), m.IntN(9), m.IntN(9) })
	m.some(func() { p.Phase = rollout.Phases()[m.IntN(len(rollout.Phases()))] })
	m.some(func() { p.Frozen, p.FrozenBy, p.Stopped, p.Rescue = "ünï", "b \"c\"", "d\ne", true })
	p.SoakSince = m.time()
	return p
}

// normal is a progress in which what is empty is absent, as nobody tells them apart.
func normal(p rollout.Progress) rollout.Progress {
	if len(p.Nodes) == 0 {
		p.Nodes = nil
	}
	return p
}

// checkProgress has a progress stored and read, by either client, and stored again.
func checkProgress(t *testing.T, before v1alpha1.RolloutStatus, want rollout.Progress) {
	t.Helper()
	s := statusOf(t, before, want)
	back := stored(t, s)
	got, err := v1alpha1.ProgressOf(back)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, normal(want)) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&back)
	if err != nil {
		t.Fatal(err)
	}
	var other v1alpha1.RolloutStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, &other); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(other, back) {
		t.Fatalf("by way of maps: got %+v, want %+v", other, back)
	}
	if again := statusOf(t, back, want); !reflect.DeepEqual(again, back) {
		t.Fatalf("the same once more: got %+v, want %+v", again, back)
	}
}

// R-RO-01: what is remembered of a rollout is what was decided to be remembered, whatever it is and whatever was there before.
func TestProgressIsStoredExactly(t *testing.T) {
	seeds := []uint64{rand.Uint64()}
	for i := range raceshare.Of(t, uint64(100)) {
		seeds = append(seeds, i)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := maker{rand.New(rand.NewPCG(seed, 1))}
			checkProgress(t, v1alpha1.RolloutStatus{}, m.progress())
			checkProgress(t, statusOf(t, v1alpha1.RolloutStatus{}, m.progress()), m.progress())
		})
	}
}

// Each field by itself, so that one that is added to the progress can't be forgotten here.
func TestProgressHasEveryField(t *testing.T) {
	at := epoch().Add(123456789)
	special := map[string]reflect.Value{
		"Nodes":     reflect.ValueOf(map[string]rollout.NodeProgress{"u": {Attempt: 1}}),
		"SoakSince": reflect.ValueOf(at), "Since": reflect.ValueOf(at), "Admitted": reflect.ValueOf(at), "NotBefore": reflect.ValueOf(at),
		"At":       reflect.ValueOf(at),
		"Outcomes": reflect.ValueOf([]rollout.Outcome{{UID: "u", Result: rollout.Lost}}),
		"Phase":    reflect.ValueOf(rollout.AtGate), "State": reflect.ValueOf(protocol.Granted), "Result": reflect.ValueOf(rollout.Undone),
	}
	set := func(v reflect.Value, i int) {
		if s, ok := special[v.Type().Field(i).Name]; ok {
			v.Field(i).Set(s)
			return
		}
		n := 0
		fill(t, v.Field(i), &n)
	}
	for i := range reflect.TypeFor[rollout.Progress]().NumField() {
		var p rollout.Progress
		set(reflect.ValueOf(&p).Elem(), i)
		checkProgress(t, v1alpha1.RolloutStatus{}, p)
	}
	for i := range reflect.TypeFor[rollout.NodeProgress]().NumField() {
		var e rollout.NodeProgress
		set(reflect.ValueOf(&e).Elem(), i)
		checkProgress(t, v1alpha1.RolloutStatus{}, rollout.Progress{Nodes: map[string]rollout.NodeProgress{"u": e}})
	}
	for i := range reflect.TypeFor[rollout.Outcome]().NumField() {
		var o rollout.Outcome
		set(reflect.ValueOf(&o).Elem(), i)
		checkProgress(t, v1alpha1.RolloutStatus{}, rollout.Progress{Outcomes: []rollout.Outcome{o, {}, o}})
	}
}

// A small rollout can be read as it is stored.
func TestProgressCanBeRead(t *testing.T) {
	s := statusOf(t, v1alpha1.RolloutStatus{}, rollout.Progress{
		Members: []string{"uid-a", "uid-b"}, Cycles: []time.Duration{90 * time.Second, time.Minute},
		Nodes: map[string]rollout.NodeProgress{"uid-b": {Node: "b", Attempt: 5, State: protocol.Granted, Since: epoch(), Failed: true}},
		Outcomes: []rollout.Outcome{
			{Node: "a", UID: "uid-a", Result: rollout.Succeeded, At: epoch()}, {Node: "c", UID: "uid-c", Result: rollout.Lost, At: epoch()},
		},
	})
	got := strings.Join([]string{s.Progress.Members, s.Progress.Nodes, s.Progress.Outcomes, s.Progress.Cycles}, "--\n")
	want := `uid-a
uid-b
--
#2 node=b attempt=5 state=Granted since=2026-03-02T12:00:00Z failed=true
--
#1 a Succeeded 2026-03-02T12:00:00Z
uid-c c Lost
--
1m30s 1m0s`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What cannot be read exactly is said to be so, with the name of the field; it is no rollout that has not begun.
func TestProgressThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ progress, want string }{
		{`"phase":"Waiting"`, `phase: "Waiting" is not known`},
		{`"soakSince":"today"`, "soakSince: "},
		{`"members":"a"`, "members: the last line is not complete"},
		{`"members":"a b\n"`, "members: line 1: "},
		{`"members":"a\n#2\n"`, "members: line 2: "},
		{`"members":"a\n\n"`, "members: line 2: "},
		{`"members":"gzip:????"`, "members: decompressing: "},
		{`"members":"gzip:AAAA"`, "members: decompressing: "},
		{`"members":"a\n","nodes":"#1 attempt=x\n"`, `nodes: line 1: field "attempt": `},
		{`"members":"a\n","nodes":"#2 attempt=1\n"`, "nodes: line 1: #2 is none of the 1 members"},
		{`"nodes":"a mood=good\n"`, `nodes: line 1: field "mood" is not known`},
		{`"nodes":"a state=Happy\n"`, `nodes: line 1: field "state": "Happy" is not known`},
		{`"nodes":"a result=Happy\n"`, `nodes: line 1: field "result": "Happy" is not known`},
		{`"nodes":"a failed=false\n"`, `nodes: line 1: field "failed": `},
		{`"nodes":"a since=now\n"`, `nodes: line 1: field "since": `},
		{`"nodes":"a node\n"`, `nodes: line 1: field "node": `},
		{`"nodes":"a\na\n"`, `nodes: line 2: the node with UID "a" is there twice`},
		{`"nodes":"a node=\"x\"y\n"`, `nodes: line 1: field "node": `},
		{`"outcomes":"a b\n"`, "outcomes: line 1: "},
		{`"outcomes":"a b Happy\n"`, `outcomes: line 1: result "Happy" is not known`},
		{`"outcomes":"a b Lost now\n"`, "outcomes: line 1: "},
		{`"outcomes":"a b Lost 2026-03-02T12:00:00Z more\n"`, `outcomes: line 1: "more" is too much`},
		{`"cycles":"1m 2x"`, "cycles: "},
	} {
		var s v1alpha1.RolloutStatus
		if err := json.Unmarshal([]byte(`{"progress":{`+c.progress+`}}`), &s); err != nil {
			t.Fatal(err)
		}
		p, err := v1alpha1.ProgressOf(s)
		if err == nil || !strings.HasPrefix(err.Error(), "status.progress."+c.want) || !reflect.DeepEqual(p, rollout.Progress{}) {
			t.Errorf("%s: got %+v, %v, want %s", c.progress, p, err, c.want)
		}
	}
	lost := v1alpha1.RolloutStatus{History: []v1alpha1.HistoryEntry{{Number: 3}}}
	if _, err := v1alpha1.ProgressOf(lost); err == nil || !strings.Contains(err.Error(), "status.progress is missing") {
		t.Errorf("progress that was deleted: got %v, want an error", err)
	}
	if p, err := v1alpha1.ProgressOf(v1alpha1.RolloutStatus{}); err != nil || !reflect.DeepEqual(p, rollout.Progress{}) {
		t.Errorf("a new rollout: got %+v, %v, want nothing", p, err)
	}
}

// What a newer version remembers outlives an older one that decides for a while.
func TestProgressKeepsWhatItDoesNotKnow(t *testing.T) {
	var before v1alpha1.RolloutStatus
	raw := `{"progress":{"stage":1,"mood":{"of":["all"]},"outlook":4,"phase":"Running"}}`
	if err := json.Unmarshal([]byte(raw), &before); err != nil {
		t.Fatal(err)
	}
	p, err := v1alpha1.ProgressOf(before)
	if err != nil || p.Stage != 1 {
		t.Fatalf("got %+v, %v, want stage 1", p, err)
	}
	p.Stage = 2
	out, err := json.Marshal(stored(t, statusOf(t, before, p)).Progress)
	for _, want := range []string{`"mood":{"of":["all"]}`, `"outlook":4`, `"stage":2`} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got %s, %v, want %s", out, err, want)
		}
	}
	checkProgress(t, before, p)
}

// plain is a text as it may stand in a JSON string.
func plain(text string) string { return strings.ToValidUTF8(text, "?") }

// Whatever stands in the tables, it is read or refused; what is read is what is stored next.
func FuzzProgress(f *testing.F) {
	f.Add("a\nb\n", "#2 node=b attempt=5 state=Granted since=2026-03-02T12:00:00.5Z failed=true\n",
		"#1 a Succeeded 2026-03-02T12:00:00+01:00\nc d Lost\n", "1m 2h")
	f.Add("\"#1\"\n", "\"\" node=\"\"\n", "#1 \"\" \"\" \"\"\n", "-1ns")
	f.Add("gzip:", "gzip:H4sIAAAAAAAA", "#0 a b\n", " ")
	f.Fuzz(func(t *testing.T, members, nodes, outcomes, cycles string) {
		p, err := v1alpha1.ProgressOf(v1alpha1.RolloutStatus{
			Progress: &v1alpha1.RolloutProgress{Members: members, Nodes: nodes, Outcomes: outcomes, Cycles: cycles},
		})
		if err != nil {
			return
		}
		checkProgress(t, v1alpha1.RolloutStatus{}, p)
	})
}
