// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package crew

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/examples/demo/internal/story"
	"github.com/belayproject/belay/internal/golden"
)

func TestAddressesAreFreeAndDifferent(t *testing.T) {
	const count = 300
	addresses, port, err := Addresses(t.Context(), count)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range addresses {
		if ip := net.ParseIP(a); ip == nil || !ip.IsLoopback() || seen[a] {
			t.Errorf("address %q: want loopback addresses, each once", a)
		}
		seen[a] = true
	}
	if len(addresses) != count {
		t.Errorf("got %d addresses, want %d", len(addresses), count)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(addresses[count-1], strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("listening where it is said to be free: %v", err)
	}
	defer l.Close()
	if err := free(t.Context(), addresses, port); err == nil {
		t.Error("free: got nil while one of the addresses is taken, want an error")
	}
}

func TestOccupiedPortIsTakenUntilItIsClosed(t *testing.T) {
	addresses, port, err := Addresses(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	o, err := OccupyPort(t.Context(), addresses, port)
	if err != nil {
		t.Fatal(err)
	}
	all := append(addresses, "127.0.0.1")
	for _, a := range all {
		if free(t.Context(), []string{a}, o.Port) == nil {
			t.Errorf("%s: port %d is free, want it taken", a, o.Port)
		}
	}
	if err := o.Close(); err != nil || o.Port == port || free(t.Context(), all, o.Port) != nil {
		t.Errorf("closed with %v, healthz has port %d, this is port %d: want another one, which is free again",
			err, port, o.Port)
	}
}

// The agent asks the real kubelet about a config, and the stand-in where there is none; it lays the config where the
// kubelet looks for it, beside what belongs to the machine.
func TestArguments(t *testing.T) {
	n := &Node{Name: "n", Address: "127.9.9.9", options: Options{Agent: "/a", Self: "/demo"}, dir: "/d"}
	text := strings.Join(n.arguments(), "\n") + "\n"
	n.kubelet = []string{"/bin/kubelet", "--config-dir=/k/conf.d", "--hostname-override=n"}
	text += "\n" + strings.Join(n.arguments(), "\n") + "\n"
	golden.Check(t, "arguments.golden", text)
}

func TestParseWhatTheAgentSays(t *testing.T) {
	for _, c := range []struct {
		name, doc, wantErr string
		want               story.Report
	}{
		{"local", `{"inUse":{"local":"init","since":"2026-07-01T12:00:00Z"},"lastKnownGood":{"local":"init"},
			"configOK":{"status":"True","reason":"r","message":"m","detail":"d"},"later":"field"}`, "",
			story.Report{Rejected: map[string]string{}, Status: "True", Reason: "r", Message: "m", Detail: "d"}},
		{"on trial", `{"inUse":{"name":"n2","uid":"u2","digest":"d2"},"lastKnownGood":{"name":"n1","uid":"u1"},
			"trial":{"healthy":"3s","needed":"4s","counted":1,"allowed":2},
			"rejected":[{"uid":"u0","reason":"bad"}],"configOK":{"status":"True"}}`, "",
			story.Report{
				Active: story.Ref{Name: "n2", UID: "u2", Digest: "d2"}, Good: story.Ref{Name: "n1", UID: "u1"},
				Rejected: map[string]string{"u0": "bad"}, Status: "True",
				Trial: &story.Trial{Healthy: 3 * time.Second, Needed: 4 * time.Second, Crashes: 1, Allowed: 2},
			}},
		{"no agent", `{"configOK":{"status":"True"}}`, "does not run", story.Report{}},
		{"no document", `oops`, "reading what the agent says", story.Report{}},
		{"no duration", `{"inUse":{},"trial":{"healthy":"soon","needed":"4s"}}`, `"soon"`, story.Report{}},
	} {
		got, err := parse([]byte(c.doc))
		if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.wantErr)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
