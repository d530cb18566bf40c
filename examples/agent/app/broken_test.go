// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/internal/golden"
)

// A broken node is one case of the page docs/broken-nodes.md.
type brokenNode struct {
	name string
	// breaks breaks a node that runs a promoted config, and returns what its status lacks until the break shows.
	breaks func(t *testing.T, n *local) func(report.Document) string
	// cause must be in the status, and step in what the doctor says to do.
	cause, step string
	// child is what status and doctor say of the child.
	child string
}

const (
	lives = `(?m)^(Child: +process|child +OK)`
	dead  = `NOT RUNNING|no child runs`
)

func brokenNodes() []brokenNode {
	return []brokenNode{
		{"bad-config", breakByConfig, "unrecognized feature gate NoSuchGate", "take the feature gate out of the config", lives},
		{"runtime-away", breakByRuntime, "validate CRI v1 runtime API", "start the container runtime", dead},
		{
			"program-missing", breakByProgram, "kubelet: no such file or directory",
			"put the same version of the program back", dead,
		},
		{"dies-later", breakByFile, "tls.crt: no such file or directory", "put the file that the line names back", lives},
		{"too-large", breakBySize, "has 300000 bytes, at most 262144 are taken", "make it smaller", lives},
	}
}

// C-08: who has read only `agent status` and `agent doctor` knows what is wrong with a node, and what to do. The page
// docs/broken-nodes.md shows both of each case.
func TestBrokenNodes(t *testing.T) {
	t.Parallel()
	for _, c := range brokenNodes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newBrokenNode(t)
			n.until(t, "the break shows", c.breaks(t, n))
			status := n.shows(t, c.child, "status")
			findings := n.shows(t, c.child, "doctor", "--output=json", "--unit=", "--render="+n.Render, "--source=directory="+n.dir)
			golden.Check(t, "broken-"+c.name+"-status.txt", status)
			golden.Check(t, "broken-"+c.name+"-doctor.txt", findings)
			if !strings.Contains(status, c.cause) {
				t.Errorf("the status lacks the cause %q:\n%s", c.cause, status)
			}
			if flat := strings.Join(strings.Fields(findings), " "); !strings.Contains(flat, c.cause) || !strings.Contains(flat, c.step) {
				t.Errorf("the doctor lacks the cause %q or the step %q:\n%s", c.cause, c.step, findings)
			}
			page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "broken-nodes.md"))
			if err != nil {
				t.Fatal(err)
			}
			for _, shown := range []string{inBrief(status), problems(findings)} {
				if !strings.Contains(string(page), "```\n"+shown+"```\n") {
					t.Errorf("docs/broken-nodes.md lacks this output:\n%s", shown)
				}
			}
		})
	}
}

// pageWidth is where the page cuts lines.
const pageWidth = 116

// cut cuts long lines.
func cut(lines []string) string {
	for i, l := range lines {
		if r := []rune(l); len(r) > pageWidth {
			lines[i] = string(r[:pageWidth-1]) + "…"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// inBrief is what the page shows of a status: from the child to what it wrote last, above the table of configs.
func inBrief(status string) string {
	head, _, _ := strings.Cut(status, "\n\n  CONFIG")
	_, rest, _ := strings.Cut(head, "\nChild:")
	return cut(strings.Split("Child:"+rest, "\n"))
}

// problems is what the page shows of the doctor's findings: those that are not OK.
func problems(findings string) string {
	var kept []string
	shown := false
	for _, l := range strings.Split(findings, "\n") {
		if !strings.HasPrefix(l, "  ") {
			f := strings.Fields(l)
			shown = len(f) > 1 && f[1] == "PROBLEM"
		}
		if shown {
			kept = append(kept, l)
		}
	}
	return cut(kept)
}

// newBrokenNode starts a node, not broken yet, that has promoted a config which needs a runtime and a certificate.
func newBrokenNode(t *testing.T) *local {
	t.Helper()
	n := newLocal(t, "--crash-loop-threshold=2", "--backoff-min=1s", "--backoff-max=1s")
	program, err := os.ReadFile(n.Child[0])
	if err != nil {
		t.Fatal(err)
	}
	n.Child[0] = filepath.Join(n.dir, "..", "kubelet")
	if err := os.WriteFile(n.Child[0], program, 0o700); err != nil {
		t.Fatal(err)
	}
	listenOn(t, n.at("runtime.sock"))
	if err := os.WriteFile(n.at("tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.WriteInit(t, n.Config(fmt.Sprintf("containerRuntimeEndpoint: unix://%s\n", n.at("runtime.sock"))))
	n.Start(t)
	good := n.wants(t, n.config("maxPods: 42\n"))
	n.until(t, "a good config is promoted", promoted(good))
	return n
}

// at is a place on the node.
func (n *local) at(name string) string { return filepath.Join(n.dir, "..", name) }

// config is one that needs the runtime and the certificate.
func (n *local) config(more string) string {
	return n.Config(fmt.Sprintf("containerRuntimeEndpoint: unix://%s\ntlsCertFile: %s\n%s", n.at("runtime.sock"), n.at("tls.crt"), more))
}

// listenOn stands in for a container runtime until the test ends.
func listenOn(t *testing.T, socket string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { // the version of a CRI runtime
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write([]byte("\x00\x00\x00\x00\x20\x0a\x050.1.0\x12\x0acontainerd\x1a\x06v2.1.4"))
			w.Header().Set("Grpc-Status", "0")
		})}
	go func() { _ = server.Serve(l) }() // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
}

// killChild ends the child as a crash does.
func (n *local) killChild(t *testing.T) {
	t.Helper()
	for _, pid := range n.Children(t) {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// remove takes a file of the node away, and ends the child.
func (n *local) remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	n.killChild(t)
}

func breakByConfig(t *testing.T, n *local) func(report.Document) string {
	return rejected(n.wants(t, n.config("featureGates: {NoSuchGate: true}\n")), "crash loop")
}

func breakByRuntime(t *testing.T, n *local) func(report.Document) string {
	n.remove(t, n.at("runtime.sock"))
	dead := deadWith("not the config: container runtime away")
	return func(d report.Document) string {
		if d.Agent == nil || d.Agent.LastEnd == nil || !strings.Contains(strings.Join(d.Agent.LastEnd.Last, " "), "validate CRI v1") {
			return "the last child did not end by itself"
		}
		return dead(d)
	}
}

func breakByProgram(t *testing.T, n *local) func(report.Document) string {
	n.remove(t, n.Child[0])
	return deadWith("no such file or directory")
}

func breakByFile(t *testing.T, n *local) func(report.Document) string {
	d, err := n.Status(t)
	if err != nil {
		t.Fatal(err)
	}
	n.remove(t, n.at("tls.crt"))
	return rejected(d.InUse.Digest, "crash loop")
}

func breakBySize(t *testing.T, n *local) func(report.Document) string {
	text := n.config("")
	return rejected(n.wants(t, text+strings.Repeat("#", 300_000-len(text)-1)+"\n"), "failed to load")
}

// deadWith says what is missing for the child to be down, and for the condition to say why.
func deadWith(words string) func(report.Document) string {
	return func(d report.Document) string {
		switch {
		case d.Agent == nil || d.Agent.Child != 0:
			return "a child runs"
		case d.ConfigOK.Status != "Unknown" || !strings.Contains(d.ConfigOK.Reason, words):
			return fmt.Sprintf("ConfigOK is %+v", d.ConfigOK)
		}
		return ""
	}
}

// shows returns what a sub-command prints while it says that of the child, without what differs from run to run.
func (n *local) shows(t *testing.T, child string, args ...string) (text string) {
	t.Helper()
	e2e.Eventually(t, soon, args[0]+" shows the child", func() error {
		out, err := n.Command(t, append(args, "--state-dir="+n.StateDir, "--init-config="+n.Init)...)
		if err != nil && args[0] != "doctor" { // which fails where it finds a problem
			return err
		}
		text = out
		if args[0] == "doctor" {
			text, err = n.findings(out)
			if err != nil {
				return err
			}
		}
		if !regexp.MustCompile(child).MatchString(text) {
			return fmt.Errorf("it prints %s", text)
		}
		return nil
	})
	return n.plain(text)
}

// findings makes the table of what the doctor prints as JSON: what differs from run to run must not change where lines
// break, and what it says of the machine that the test runs on is left out.
func (n *local) findings(out string) (string, error) {
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return "", err
	}
	var kept []doctor.Finding
	for _, f := range r.Findings {
		if slices.Contains([]string{"state", "clock", "restart"}, f.Check) {
			continue
		}
		f.What, f.Remedy = n.plain(f.What), n.plain(f.Remedy)
		for i, l := range f.Lines {
			f.Lines[i] = n.plain(l)
		}
		kept = append(kept, f)
	}
	return page.Findings(doctor.NewReport(kept)), nil
}

// plain replaces what differs from run to run.
func (n *local) plain(out string) string {
	named := *n.Agent
	named.Node = "no-name-of-a-node"
	text := string(plain(&world{&e2e.Cluster{Namespace: "no-name-of-a-namespace"}, &named}, out))
	for _, r := range []struct{ pattern, with string }{
		{regexp.QuoteMeta(n.dir), "/etc/belay"}, {regexp.QuoteMeta(filepath.Dir(n.dir)), "/etc"}, {regexp.QuoteMeta(filepath.Dir(n.Init)), "/node"},
		{`\b(after|ended) [0-9.hms]+[hms]\b( ago)?`, "$1 SOME-TIME"},
		{`([EIWF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `, "${1}TIME PID "},
		{`\b\d+ (within|restarts within|unexplained restarts)`, "N $1"},
		{`healthy for [0-9.hms]+`, "healthy for SOME-TIME"}, {`(tolerated|starts|ends): \d+`, "$1: N"},
		{`sha256:[0-9a-f]+`, "sha256:DIGEST"}, {`ended (once|\d+ times)`, "ended N times"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return regexp.MustCompile(`file-[0-9a-f]{32}`).ReplaceAllStringFunc(text, func(uid string) string {
		i := slices.Index(n.uids, uid)
		if i < 0 {
			i, n.uids = len(n.uids), append(n.uids, uid)
		}
		return fmt.Sprintf("UID-%d", i+1)
	})
}
