// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider"
)

func exited(code int) map[string]stepStatus { return map[string]stepStatus{"s": {stepExited, code}} }

func in(state stepState) map[string]stepStatus { return map[string]stepStatus{"s": {state, 0}} }

// What is seen of a step decides what comes next, and what has failed is never taken for what was done.
func TestSettle(t *testing.T) {
	next := &spec{Token: "t", Digest: "new"}
	for _, c := range []struct {
		name  string
		r     record
		a     answer
		want  phase
		v     verdict
		state provider.State
	}{
		{"reserved", record{Phase: reserved}, answer{}, reserved, settled, provider.Pending},
		{"never begun", record{Phase: starting}, answer{}, starting, cut, provider.Pending},
		{"files are gone", record{Phase: starting, Step: step{"s", bootstrapStep}}, answer{}, starting, cut, provider.Pending},
		{"cut off", record{Phase: starting, Step: step{"s", bootstrapStep}}, answer{steps: in(stepReady)}, starting, cut, provider.Pending},
		{"of another step", record{Phase: starting, Step: step{"x", bootstrapStep}}, answer{steps: exited(0)}, starting, cut, provider.Pending},
		{"bootstrap runs", record{Phase: starting, Step: step{"s", bootstrapStep}}, answer{steps: in(stepRunning)}, starting, underWay, provider.Pending},
		{"bootstrapped", record{Phase: starting, Step: step{"s", bootstrapStep}}, answer{steps: exited(0), held: true}, running, settled, provider.Running},
		{"bootstrap fails", record{Phase: starting, Step: step{"s", bootstrapStep}}, answer{steps: exited(1)}, broken, failed, provider.Broken},
		{"bootstrap asks for more", record{Phase: starting, Step: step{"s", bootstrapStep}}, answer{steps: exited(75)}, starting, failed, provider.Pending},
		{"updated", record{Phase: updating, Next: next, Step: step{"s", updateStep}}, answer{steps: exited(0)}, running, settled, provider.Running},
		{"update fails", record{Phase: updating, Next: next, Step: step{"s", updateStep}}, answer{steps: exited(9)}, running, failed, provider.Running},
		{"stop runs", record{Phase: halting, Then: retained, Step: step{"s", stopStep}}, answer{steps: in(stepRunning)}, halting, underWay, provider.Stopping},
		{"stop fails", record{Phase: halting, Then: retained, Step: step{"s", stopStep}}, answer{steps: exited(1)}, halting, failed, provider.Stopping},
		{"stop lies", record{Phase: halting, Then: retained, Step: step{"s", stopStep}}, answer{steps: exited(0), held: true}, halting, cut, provider.Stopping},
		{"retained", record{Phase: halting, Then: retained, Step: step{"s", stopStep}}, answer{steps: exited(0)}, retained, settled, provider.Retained},
		{"stopped", record{Phase: halting, Then: stopped, Step: step{"s", stopStep}}, answer{steps: exited(0)}, stopped, settled, provider.Stopped},
		{"to be cleaned", record{Phase: halting, Then: cleaning, Step: step{"s", stopStep}}, answer{steps: exited(0)}, cleaning, cut, provider.Stopping},
		{"cleaned", record{Phase: cleaning, Step: step{"s", cleanupStep}}, answer{steps: exited(0)}, free, settled, provider.Stopping},
		{"cleanup fails", record{Phase: cleaning, Step: step{"s", cleanupStep}}, answer{steps: exited(1)}, dirty, failed, provider.Broken},
		{"goes down", record{Phase: rebooting, Boot: "1", Step: step{"s", rebootStep}}, answer{boot: "1", steps: exited(0)}, rebooting, underWay, provider.Running},
		{"does not go down", record{Phase: rebooting, Boot: "1", Step: step{"s", rebootStep}}, answer{boot: "1", steps: exited(1)}, running, failed, provider.Running},
		{"rebooted", record{Phase: rebooting, Boot: "1", Step: step{"s", rebootStep}}, answer{boot: "2", steps: in(stepReady)}, running, settled, provider.Running},
		{"rebooted and to be started", record{Phase: rebooting, Boot: "1", spec: spec{Config: Config{Start: "x"}}}, answer{boot: "2"}, starting, cut, provider.Pending},
	} {
		c.r.Token = "t"
		got, v := c.r.settle(c.a)
		if got.Phase != c.want || v != c.v {
			t.Errorf("%s: phase %q, verdict %d, want %q, %d", c.name, got.Phase, v, c.want, c.v)
		}
		c.a.rec = &c.r
		if state := (sight{answer: c.a, host: Host{Name: "h"}}).view("t").State; state != c.state {
			t.Errorf("%s: state %q, want %q", c.name, state, c.state)
		}
		if v == failed && (got.Message == "" || got.Digest == "new") {
			t.Errorf("%s: message %q, digest %q: want the reason, and what was", c.name, got.Message, got.Digest)
		}
	}
}

// A class comes from an exit code as sysexits(3) has them.
func TestClassOf(t *testing.T) {
	for code, want := range map[int]provider.Class{
		1: provider.Internal, 64: provider.InvalidConfig, 69: provider.Unavailable, 75: provider.Unavailable, 77: provider.Unauthorized,
		78: provider.InvalidConfig, 124: provider.Internal, 255: provider.Internal,
	} {
		if got := classOf(code); got != want {
			t.Errorf("exit code %d is %s, want %s", code, got, want)
		}
	}
}

func good() record {
	return record{
		Format: format, Serial: "x", Host: "h", Phase: running, spec: spec{Token: "t-1", Owner: provider.Owner{Cluster: "c", UID: "u"}, Digest: "d"},
	}
}

// A host that lies about its claim is not believed.
func TestParseRefuses(t *testing.T) {
	for name, change := range map[string]func(*record){
		"format":       func(r *record) { r.Format = 2 },
		"host":         func(r *record) { r.Host = "other" },
		"phase":        func(r *record) { r.Phase = "Melting" },
		"no phase":     func(r *record) { r.Phase = free },
		"serial":       func(r *record) { r.Serial = "" },
		"owner":        func(r *record) { r.Owner = provider.Owner{} },
		"token":        func(r *record) { r.Token = "../t" },
		"then":         func(r *record) { r.Phase, r.Then = halting, running },
		"no next":      func(r *record) { r.Phase = updating },
		"next":         func(r *record) { r.Next = &spec{Token: "A B"} },
		"another next": func(r *record) { r.Phase, r.Next = updating, &spec{Token: "t-2"} },
		"step":         func(r *record) { r.Step.ID = "../../etc" },
	} {
		r := good()
		change(&r)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(data, "h"); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	r := good()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"unknown field": strings.Replace(string(data), "{", `{"extra":1,`, 1), "two": string(data) + string(data), "half": string(data[:40]), "line": string(data) + "\n",
	} {
		if _, err := parse([]byte(text), "h"); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if got, err := parse(data, "h"); err != nil || got.Token != r.Token {
		t.Errorf("a good one: %+v, %v", got, err)
	}
}

// An answer is whole, of this request, and has nothing that is not known.
func TestParseAnswer(t *testing.T) {
	const begin, end = "belay n begin\nboot b\n", "belay n end\n"
	for name, c := range map[string]struct {
		text string
		want provider.Class
	}{
		"good":            {"welcome\n" + begin + "step a running\nstep b exited 7\nheld\n" + end, ""},
		"after a blank":   {begin + end, ""},
		"no end":          {begin + "claim e3", provider.Unavailable},
		"no beginning":    {"boot b\n" + end, provider.Internal},
		"nothing":         {"", provider.Unavailable},
		"another request": {"belay m begin\nboot b\nbelay m end\n", provider.Unavailable},
		"after another":   {"belay m begin\nheld\nbelay m end\n" + begin + end, ""},
		"more":            {begin + end + "held\n", provider.Internal},
		"twice":           {begin + begin + end, provider.Internal},
		"unknown":         {begin + "surprise 1\n" + end, provider.Internal},
		"no boot":         {"belay n begin\n" + end, provider.Internal},
		"exit code":       {begin + "step a exited 256\n" + end, provider.Internal},
		"no exit code":    {begin + "step a exited\n" + end, provider.Internal},
		"state":           {begin + "step a melted\n" + end, provider.Internal},
		"step":            {begin + "step ../a running\n" + end, provider.Internal},
		"many steps":      {begin + manySteps() + end, provider.Internal},
		"claim":           {begin + "claim !!!\n" + end, provider.Internal},
		"empty claim":     {begin + "claim \n" + end, provider.Internal},
		"long line":       {begin + strings.Repeat("x", maxAnswer+1) + "\n" + end, provider.Internal},
	} {
		_, err := parseAnswer([]byte(c.text), "n", "h")
		if got := provider.ClassOf(err); got != c.want {
			t.Errorf("%s: %v, want class %q", name, err, c.want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
	a, err := parseAnswer([]byte(begin+"step b exited 7\nused\nfail busy lock\n"+end), "n", "h")
	if err != nil || a.boot != "b" || a.steps["b"] != (stepStatus{stepExited, 7}) || !a.used || provider.ClassOf(a.err()) != provider.Unavailable {
		t.Errorf("got %+v, %v", a, err)
	}
}

// A Delete on a host that still ends the processes of an earlier step is not done, and has not failed; one on a host
// whose lock is held has.
func TestDeleteWaitsForProcesses(t *testing.T) {
	const begin, end = "belay n begin\nboot b\n", "belay n end\n"
	for what, waits := range map[string]bool{"processes": true, "step": true, "lock": false} {
		a, err := parseAnswer([]byte(begin+"fail busy "+what+"\n"+end), "n", "h")
		if got := a.err(); err != nil || errors.Is(got, errEnding) != waits || provider.ClassOf(got) != provider.Unavailable {
			t.Errorf("busy %s: got %v (%v), want class Unavailable, and errEnding: %t", what, got, err, waits)
		}
		p, err := endProgress("h3", sight{}, failed, wrap("host", a.err()))
		if waits != (err == nil) || p.Done || waits != strings.Contains(p.Message, "h3: the processes") {
			t.Errorf("busy %s: Delete: got %+v and error %v, want it to wait: %t", what, p, err, waits)
		}
	}
}

func manySteps() string {
	var b strings.Builder
	for i := range maxSteps + 1 {
		b.WriteString("step " + strings.Repeat("a", 1+i%60) + string(rune('a'+i/60)) + " running\n")
	}
	return b.String()
}

// Whatever a host says, nothing panics, and a record that is taken can be settled, viewed and written again.
func FuzzParseAnswer(f *testing.F) {
	r := good()
	data, _ := json.Marshal(r)
	f.Add([]byte("belay n begin\nboot b\nstep a exited 0\nheld\nused\nbelay n end\n"), []byte(nil))
	f.Add([]byte("belay n begin\nfail lacks flock\nbelay n end\n"), data)
	f.Add([]byte("belay n begin\nboot b\nclaim e30=\nconsole aGk=\nbelay n end\n"), []byte(`{"format":1,"phase":"Halting","then":"Cleaning"}`))
	f.Fuzz(func(t *testing.T, out, claim []byte) {
		a, err := parseAnswer(out, "n", "h")
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		r, err := parse(claim, "h")
		if err != nil {
			return
		}
		a.rec = &r
		next, v := r.settle(a)
		if v == settled && next.Phase != r.Phase && slices.Contains([]phase{halting, cleaning}, r.Phase) && a.steps[r.Step.ID].state != stepExited {
			t.Errorf("%q became %q without the end of a script", r.Phase, next.Phase)
		}
		i := sight{answer: a, host: Host{Name: "h"}}.view(r.Token)
		if i.Token != r.Token || i.State == "" {
			t.Errorf("the instance of %+v is %+v", r, i)
		}
		again, err := next.encode("s")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse([]byte(again), "h"); err != nil && next.Phase != free {
			t.Errorf("%s was made of %s and is not taken: %v", again, claim, err)
		}
	})
}

// ssh's own words decide the class of its failure, and no others come into an error.
func TestRefusal(t *testing.T) {
	for text, want := range map[string]provider.Class{
		"root@h: Permission denied (publickey).":                                           provider.Unauthorized,
		"@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@":                         provider.Unauthorized,
		"No ED25519 host key is known for h\nHost key verification failed.":                provider.Unauthorized,
		"Received disconnect from h: Too many authentication failures":                     provider.Unauthorized,
		"ssh: connect to host h port 22: Connection refused":                               provider.Unavailable,
		"ssh: Could not resolve hostname h: Name or service not known":                     provider.Unavailable,
		"kex_exchange_identification: read: Connection reset by peer\nsecret-of-the-host!": provider.Unavailable,
		"": provider.Unavailable,
	} {
		err := refusal(text)
		if provider.ClassOf(err) != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
