// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

var update = flag.Bool("update", false, "write the transcripts and golden files anew")

// TestTranscripts plays every file in testdata/transcripts. A line that begins with "> " is a command; the indented
// lines behind it are what it answered. Run with -update to write the answers, and review the difference.
//
// R-CS-64: crashloop.txt has the vectors of the count. R-CS-67, R-CS-68: records.txt has versions that do not read each
// other's beliefs, and one that finds its own again. R-CS-46: versions.txt has a trial that an upgrade begins anew.
// R-CS-57: records.txt and literals.txt have the list of bad configs. R-CS-58, R-CS-66: crashloop.txt has a config that
// is listed, avoided when it is assigned again, and tried when it is forgotten.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			compareLines(t, got, string(want))
		})
	}
}

func compareLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		gl, wl := at(g, i), at(w, i)
		if gl != wl {
			t.Fatalf("line %d:\n got %q\nwant %q\n(-update writes the file anew)", i+1, gl, wl)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

// play runs the commands of a transcript and gives it back with fresh answers.
func play(t *testing.T, text string) string {
	t.Helper()
	p := newPlayer(t)
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "    ") {
			continue
		}
		out.WriteString(line + "\n")
		if cmd, ok := strings.CutPrefix(line, "> "); ok {
			for _, answer := range p.do(cmd) {
				out.WriteString("    " + answer + "\n")
			}
		}
	}
	return out.String()
}

// A player is a node that obeys the commands of a transcript.
type player struct {
	t       *testing.T
	store   *lkgtest.Store
	tr      *lkg.Tracker
	wall    time.Time
	boot    int
	ids     int
	version string
	policy  lkg.Policy
	checks  map[string]lkg.Check
	limits  map[string]lkg.Limits
}

func newPlayer(t *testing.T) *player {
	return &player{
		t: t, store: lkgtest.NewStore(), wall: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), version: "v1.0.0",
		checks: map[string]lkg.Check{"local": {Outcome: lkg.CheckOK, Origin: lkg.OriginInit}},
		limits: map[string]lkg.Limits{},
	}
}

func named(name string) lkg.Ref {
	if name == "local" {
		return lkg.Ref{}
	}
	return lkg.Ref{
		Namespace: "fleet", Name: name, UID: "uid-" + name, ResourceVersion: "1", Key: "kubelet", Digest: "sha256:" + name,
	}
}

func nameOf(r lkg.Ref) string {
	if r.IsLocal() {
		return "local"
	}
	return strings.TrimPrefix(r.UID, "uid-")
}

func (p *player) check(r lkg.Ref) lkg.Check {
	if c, ok := p.checks[nameOf(r)]; ok {
		return c
	}
	return lkg.Check{Outcome: lkg.CheckOK}
}

func (p *player) limitsOf(r lkg.Ref) lkg.Limits { return p.limits[nameOf(r)] }

func (p *player) tracker() *lkg.Tracker {
	p.t.Helper()
	if p.tr == nil {
		tr, err := lkg.NewTracker(p.t.Context(), p.store, lkg.Options{
			Version: p.version, BootID: fmt.Sprintf("boot-%d", p.boot), Policy: p.policy,
			Now: func() time.Time { p.wall = p.wall.Add(time.Second); return p.wall },
			ID:  func() string { p.ids++; return fmt.Sprintf("id-%d", p.ids) },
		})
		if err != nil {
			p.t.Fatal(err)
		}
		p.tr = tr
	}
	return p.tr
}

// do runs one command: first those that set the scene, then those that call the tracker.
func (p *player) do(line string) []string {
	p.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	arg, more, _ := strings.Cut(rest, " ")
	if p.scene(word, arg, more) {
		return nil
	}
	answer, err := p.call(p.t.Context(), word, arg, more)
	if err != nil {
		answer = append(answer, "error: "+err.Error())
	}
	if len(answer) == 0 {
		answer = []string{"ok"}
	}
	return answer
}

func (p *player) scene(word, arg, more string) bool {
	p.t.Helper()
	switch word {
	case "baseline":
		p.checks["local"] = baseline(arg)
	case "check":
		p.checks[arg] = checkOf(more)
	case "limits":
		p.limits[arg] = parseLimits(p.t, more)
	case "literal":
		p.policy.Literal, p.tr = true, nil
	case "process":
		p.tr = nil
	case "version":
		p.version, p.tr = arg, nil
	case "reboot":
		p.boot, p.tr = p.boot+1, nil
	case "clock":
		p.wall = p.wall.Add(duration(p.t, arg))
	case "disk":
		p.store.StopAt(map[string]int{"full": 1, "ok": 0}[arg], lkgtest.StopFull)
	case "damage":
		p.store.Damage(arg, errors.New("digest does not match"))
	case "write":
		p.store.Set(arg, []byte(more))
	default:
		return false
	}
	return true
}

func baseline(word string) lkg.Check {
	if word == "invalid" {
		return lkg.Check{Outcome: lkg.CheckInvalid, Origin: lkg.OriginInit, Err: errors.New("port must be positive")}
	}
	return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.Origin(word)}
}

func checkOf(text string) lkg.Check {
	word, why, _ := strings.Cut(text, " ")
	c := lkg.Check{Outcome: map[string]lkg.CheckOutcome{
		"ok": lkg.CheckOK, "invalid": lkg.CheckInvalid, "undecodable": lkg.CheckUndecodable,
	}[word]}
	if why != "" {
		c.Err = errors.New(why)
	}
	return c
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parseLimits(t *testing.T, text string) (l lkg.Limits) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "threshold":
			if _, err := fmt.Sscan(v, &l.CrashLoopThreshold); err != nil {
				t.Fatal(err)
			}
		case "trial":
			l.Trial = duration(t, v)
		case "run":
			l.MinHealthyRun = duration(t, v)
		case "deadline":
			l.ProbeDeadline = duration(t, v)
		default:
			t.Fatalf("no limit %q", k)
		}
	}
	return l
}

// call makes one call to the tracker.
func (p *player) call(ctx context.Context, word, arg, more string) ([]string, error) {
	p.t.Helper()
	tr := p.tracker()
	switch word {
	case "start":
		return p.start(ctx, arg, more)
	case "decide":
		return p.decide(ctx)
	case "adopt":
		err := errors.Join(tr.Assign(ctx, named(arg)), tr.PlanRestart(ctx, lkg.CauseAdoption))
		p.tr = nil
		return nil, err
	case "assign":
		return nil, tr.Assign(ctx, named(arg))
	case "plan":
		return nil, tr.PlanRestart(ctx, lkg.Cause(arg))
	case "reset":
		return nil, tr.Reset(ctx)
	case "desired":
		return nil, tr.SetDesired(ctx, lkg.Outcome{Kind: lkg.OutcomeKind(arg), Cause: more})
	case "forget":
		return nil, tr.Forget(ctx, "uid-"+arg)
	case "reject":
		return nil, tr.Reject(ctx, named(arg), more)
	case "promote":
		return nil, tr.Promote(ctx)
	case "healthy", "failing":
		return p.report(ctx, word == "failing", duration(p.t, arg))
	default:
		return p.show(word, arg)
	}
}
