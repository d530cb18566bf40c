// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/golden"
	"github.com/belayproject/belay/lkg"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ref(n string) lkg.Ref {
	return lkg.Ref{
		Namespace: "kube-system", Name: "kubelet-" + n, UID: n + "000000-1111-2222-3333-444444444444", ResourceVersion: "7",
		Key: "kubelet", Digest: "sha256:" + strings.Repeat(n+"0", 16),
	}
}

// checks judges every config as good but those that are named.
func checks(bad map[string]lkg.Check) func(lkg.Ref) lkg.Check {
	return func(r lkg.Ref) lkg.Check {
		c, ok := bad[r.Name]
		if !ok {
			c = lkg.Check{Outcome: lkg.CheckOK}
		}
		if r.IsLocal() {
			c.Origin = lkg.OriginInit
		}
		return c
	}
}

// explain decides as a start would.
func explain(s lkg.State, bad map[string]lkg.Check) configsync.Explanation {
	limits := func(lkg.Ref) lkg.Limits { return lkg.Limits{Trial: 10 * time.Minute, CrashLoopThreshold: 1} }
	return configsync.Explanation{
		State: s, Next: lkg.Decide(lkg.Input{State: s, Recorded: true, Limits: limits}, checks(bad)),
	}
}

// base is a node that runs v2, with v1 as the last known good config.
func base() lkg.State {
	return lkg.State{
		Version: "v1.2.3", BootID: "boot-1",
		Current:       lkg.Assignment{Ref: ref("b2"), ID: "assignment-2", At: noon.Add(-5 * time.Minute), BootID: "boot-1"},
		LastKnownGood: ref("a1"), PromotedAt: noon.Add(-72 * time.Hour),
		Desired: lkg.Outcome{Kind: lkg.DesiredCorrect, At: noon.Add(-5 * time.Minute)},
	}
}

// starts are the adoption and n crashes of the current assignment.
func starts(n int) []lkg.Start {
	out := []lkg.Start{{At: noon.Add(-5 * time.Minute), Cause: lkg.CauseAdoption, Detail: "restart announced",
		Assignment: "assignment-2", N: 1}}
	for i := range n {
		out = append(out, lkg.Start{
			At: noon.Add(time.Duration(i-n) * time.Minute), Cause: lkg.CauseCrash, Detail: "exit status 255", Assignment: "assignment-2",
			N: i + 2, BootID: "boot-1", After: lkg.Used{Role: lkg.RoleCurrent, UID: ref("b2").UID, Key: "kubelet",
				Digest: ref("b2").Digest},
			Used: lkg.Used{Role: lkg.RoleCurrent, UID: ref("b2").UID, Key: "kubelet", Digest: ref("b2").Digest},
		})
	}
	return out
}

func live(e configsync.Explanation, st configsync.Status) *Live {
	st.Assigned, st.LastKnownGood, st.Local = e.State.Current.Ref, e.State.LastKnownGood, string(lkg.OriginInit)
	if st.Condition == (lkg.Condition{}) {
		st.Condition = e.Next.Condition
	}
	st.StartedAt = noon.Add(-4 * time.Minute)
	return &Live{
		Node: "node-7", Status: st,
		Agent: Agent{PID: 4242, Child: 4243, Source: "nodeconfig", Started: noon.Add(-20 * 24 * time.Hour)},
	}
}

// scenes are the situations that a person meets.
func scenes() map[string]func() Document {
	all := running()
	maps.Copy(all, stopped())
	return all
}

// running are scenes with an agent.
func running() map[string]func() Document {
	return map[string]func() Document{
		"starting": func() Document {
			e := explain(base(), nil)
			return Build(noon, &Live{Node: "node-7", Agent: Agent{PID: 4242, Source: "nodeconfig", Started: noon}}, e)
		},
		"local": func() Document {
			s := base()
			s.Current, s.LastKnownGood, s.PromotedAt = lkg.Assignment{}, lkg.Ref{}, time.Time{}
			s.Desired.Kind = lkg.DesiredEmpty
			e := explain(s, nil)
			return Build(noon, live(e, configsync.Status{}), e)
		},
		"trial": func() Document {
			s := base()
			s.Starts = starts(1)
			e := explain(s, nil)
			return Build(noon, live(e, configsync.Status{Active: ref("b2"), Trial: &configsync.TrialStatus{
				Since: s.Current.At, Needed: 10 * time.Minute, Healthy: 190*time.Second +
					300*time.Millisecond, Counted: 1, Allowed: 1,
				Ignored: []string{"Adoption: restart announced at 2026-11-21T11:55:00Z"},
				Failing: []string{`http://127.0.0.1:10248/healthz: connect: connection refused`},
			}}), e)
		},
		"promoted": func() Document {
			s := base()
			s.LastKnownGood, s.Previous, s.PromotedAt = ref("b2"), ref("a1"), noon.Add(-30*time.Second)
			e := explain(s, nil)
			return Build(noon, live(e, configsync.Status{Active: ref("b2")}), e)
		},
		"rolledback": func() Document {
			s := base()
			s.Starts = starts(2)
			s.Bad = []lkg.BadEntry{
				{Ref: ref("f9"), Time: noon.Add(-48 * time.Hour), Reason: "failed to load current (UID: " + ref("f9").UID + ")",
					Evidence: "data[kubelet]: unknown field \"maxPod\""},
				{Ref: ref("b2"), Time: noon.Add(-3 * time.Minute), Reason: "failed to run current (UID: " + ref("b2").UID +
					"), crash loop: 2 unexplained restarts, tolerated: 1"},
			}
			e := explain(s, nil)
			return Build(noon, live(e, configsync.Status{Active: ref("a1")}), e)
		},
		"dead": func() Document {
			s := base()
			s.LastKnownGood, s.Starts = ref("b2"), starts(3)
			e := explain(s, nil)
			cause := `exit status 1: run.go:72] "command failed" err="open /etc/ca.crt: no such file or directory"`
			l := live(e, configsync.Status{Active: ref("b2"), Condition: lkg.Condition{
				Status: lkg.StatusUnknown, Reason: "not healthy: ended: " + cause, Message: e.Next.Condition.Message,
			}})
			l.Agent.Child = 0
			l.Agent.LastEnd = &End{At: noon.Add(-7 * time.Second), How: "exit status 1 after 312ms", Cause: cause,
				Last: []string{
					`I1121 11:59:53.000001    4243 server.go:1] "starting"`,
					`E1121 11:59:53.000002    4243 run.go:72] "command failed" err="open /etc/ca.crt: no such file or directory"`,
				}}
			return Build(noon, l, e)
		},
		"many": func() Document {
			s := base()
			s.LastKnownGood = ref("b2")
			for i := range 60 {
				b := lkg.BadEntry{Ref: ref(string(rune('c' + i%20))), Time: noon.Add(time.Duration(i) * time.Minute)}
				b.Reason = []string{"by hand", "failed to load current (UID: " + b.Ref.UID + ")",
					"failed to validate current (UID: " + b.Ref.UID + ")"}[i%3]
				s.Bad = append(s.Bad, b)
			}
			e := explain(s, nil)
			return Build(noon, live(e,
				configsync.Status{Active: ref("b2"), Pending: &configsync.Change{To: ref("c3"), Why: "an edit in place"}}), e)
		},
		"unclear": func() Document {
			e := explain(base(), nil)
			st := configsync.Status{Active: ref("b2"), Error: "reading NodeConfig \"node-7\": connection refused"}
			st.Condition = e.Next.Unclear(st.Error)
			return Build(noon, live(e, st), e)
		},
	}
}

// stopped are scenes without one.
func stopped() map[string]func() Document {
	return map[string]func() Document{
		"fresh": func() Document {
			return Build(noon, nil, explain(lkg.State{Version: "v1.2.3"}, nil))
		},
		"offline": func() Document {
			s := base()
			s.Starts = starts(2)
			return Build(noon, nil, explain(s, nil))
		},
		"refused": func() Document {
			bad := map[string]lkg.Check{"": {Outcome: lkg.CheckInvalid, Err: errors.New("maxPods must be 0 or more")}}
			return Build(noon, nil, explain(base(), bad))
		},
		"damaged": func() Document {
			s := base()
			s.LastKnownGoodLost, s.LastKnownGood, s.PromotedAt = true, lkg.Ref{}, time.Time{}
			s.Notices = []lkg.Notice{{Stream: "last-known-good", Err: errors.New("digest differs")}}
			return Build(noon, nil,
				explain(s, map[string]lkg.Check{"kubelet-b2": {Outcome: lkg.CheckUnavailable, Err: errors.New("no checkpoint")}}))
		},
		"noinit": func() Document {
			return Build(noon, nil, configsync.Explanation{State: base()})
		},
		"hostile": func() Document {
			s := base()
			s.Bad = []lkg.BadEntry{{Ref: ref("b2"), Time: noon, Reason: "a\n\x1b[2Jb\tc", Evidence: "d\ne"}}
			return Build(noon, nil, explain(s, nil))
		},
	}
}

func render(t *testing.T, f Format, d Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f, d); err != nil {
		t.Fatalf("Write(%s): %v", f, err)
	}
	return b.Bytes()
}

// R-CS-61, R-CS-84: a person sees which config is in use, why and since when, the last known good one, what was
// rejected and why, and what the next start would do.
func TestTables(t *testing.T) {
	for name, build := range scenes() {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".txt", string(render(t, Table, build()))) })
	}
}

// What scripts read is part of the interface.
func TestMachineFormats(t *testing.T) {
	d := scenes()["rolledback"]()
	asJSON, asYAML := render(t, JSON, d), render(t, YAML, d)
	golden.Check(t, "rolledback.json", string(asJSON))
	golden.Check(t, "rolledback.yaml", string(asYAML))
	var fromJSON, fromYAML Document
	if err := json.Unmarshal(asJSON, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(asYAML, &fromYAML); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromJSON, d) || !reflect.DeepEqual(fromYAML, d) {
		t.Errorf("a format loses something:\nJSON %+v\nYAML %+v\nwant %+v", fromJSON, fromYAML, d)
	}
}

// What others wrote can't move the cursor or fake a line.
// S-CS-11.
func TestATableHoldsNoControlCharacters(t *testing.T) {
	for _, r := range string(render(t, Table, scenes()["hostile"]())) {
		if r < ' ' && r != '\n' {
			t.Fatalf("the table holds %q", r)
		}
	}
}

func TestParseFormat(t *testing.T) {
	for _, name := range []string{"table", "json", "yaml"} {
		if f, err := ParseFormat(name); err != nil || string(f) != name {
			t.Errorf("ParseFormat(%q) = %q, %v", name, f, err)
		}
	}
	if _, err := ParseFormat("wide"); err == nil || !strings.Contains(err.Error(), "table, json or yaml") {
		t.Errorf(`ParseFormat("wide") = %v, want an error that lists what there is`, err)
	}
}
