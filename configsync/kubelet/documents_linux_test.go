// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/tier"
)

const (
	// allDocuments, set to anything, has the test run each document, and not a part. make kubelet-proof sets it.
	allDocuments = "BELAY_ALL_DOCUMENTS"
	// part is how many documents there are for one that a run of all tests takes.
	part = 16
	// lives is how long a kubelet lives that has accepted a document.
	lives = 3 * time.Second
	// slowest is the longest time that a judgement may take on average, on two cores that do nothing else.
	slowest = 3 * time.Second
)

// What the prover says of a config is what the real kubelet makes of it: it is started on each document, with a real
// API server and a real runtime, and lives or dies.
func TestProverAgreesWithTheKubelet(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	nodetier.Require(t)
	env := testenv.Start(t, testenv.Options{})
	node, err := nodetier.Start(t, env).NewNode("n1")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, env: env, node: node}
	b.prover = b.newProver()
	texts := readDocuments(t)
	if len(texts) < 200 {
		t.Fatalf("there are %d documents, want 200 or more", len(texts))
	}
	for i, text := range texts {
		if os.Getenv(allDocuments) != "" || i%part == 0 {
			b.compare(text)
		}
	}
	n := time.Duration(b.runs)
	t.Logf("%d documents: the kubelet runs %d and refuses %d; called good and refused by the kubelet: %d; "+
		"refused and run by the kubelet: %d; undecided: %d; "+
		"refused by the rule about unknown fields: %d; a judgement takes %s, the longest %s",
		b.runs, b.ran, b.refused, b.wrongGood, b.wrongBad,
		b.undecided, b.unknown, (b.total / n).Round(10*time.Millisecond), b.longest.Round(10*time.Millisecond))
	if os.Getenv(allDocuments) != "" && b.total/n > slowest {
		t.Errorf("a judgement takes %s, want at most %s", b.total/n, slowest)
	}
}

// readDocuments are the lines of the file that hold one.
func readDocuments(t *testing.T) (texts []string) {
	t.Helper()
	f, err := os.Open("testdata/documents.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Text(); line != "" && line[0] != '#' {
			texts = append(texts, line)
		}
	}
	return texts
}

// A bench compares a prover with a kubelet.
type bench struct {
	*testing.T
	env    *testenv.Env
	node   *nodetier.Node
	prover configsync.Inspector

	runs, ran, refused, wrongGood, wrongBad, undecided, unknown int
	total, longest                                              time.Duration
}

func (b *bench) newProver() configsync.Inspector {
	b.Helper()
	program, args := b.node.KubeletCommand("unused")
	p, err := kubelet.NewProver(kubelet.ProverOptions{
		Program: program, Args: args, Dir: filepath.Join(b.TempDir(), "prover"),
		Control: func(context.Context) ([]byte, error) { return b.node.Config(nil) },
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// document is a line over the config of the node.
func (b *bench) document(text string) []byte {
	b.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "$DIR", b.TempDir())), &fields); err != nil {
		b.Fatalf("%s: %v", text, err)
	}
	all := b.node.BaseConfig()
	maps.Copy(all, fields)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	doc, err := yaml.Marshal(all)
	if err != nil {
		b.Fatal(err)
	}
	return doc
}

// compare judges a document and runs it.
func (b *bench) compare(text string) {
	b.Helper()
	doc := b.document(text)
	began := time.Now()
	judged := b.prover.Inspect(b.Context(), "kubelet",
		configsync.Object{UID: "u", Data: map[string]string{"kubelet": string(doc)}})
	took := time.Since(began)
	runs, end := b.run(doc)
	b.runs, b.total, b.longest = b.runs+1, b.total+took, max(b.longest, took)
	if runs {
		b.ran++
	} else {
		b.refused++
	}
	switch {
	case errors.Is(judged, configsync.ErrUndecided):
		b.undecided++
		b.Logf("UNDECIDED %s: %v; the kubelet runs it: %t", text, judged, runs)
	case judged == nil && !runs:
		b.wrongGood++
		b.Errorf("%s is called good, and the kubelet refuses it:\n%s", text, end)
	case judged != nil && runs && strings.Contains(judged.Error(), "does not know the field"):
		b.unknown++
	case judged != nil && runs:
		b.wrongBad++
		b.Errorf("%s is refused, and the kubelet runs it: %v", text, judged)
	}
	b.Logf("%-5t %5dms %s: %v", judged == nil, took.Milliseconds(), text, judged)
}

// run starts the kubelet on a document and reports whether it lives. end is the end of its log where it does not.
func (b *bench) run(doc []byte) (runs bool, end string) {
	b.Helper()
	config := filepath.Join(b.node.Dir, "kubelet.yaml")
	program, args := b.node.KubeletCommand(config)
	err := errors.Join(os.RemoveAll(filepath.Join(b.node.Dir, "kubelet")), os.WriteFile(config, doc, 0o600))
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprintf("kubelet-%d", b.runs)
	p := b.env.Process(name, append([]string{program}, args...), func(context.Context) error { return nil })
	if err := p.Start(b.Context()); err != nil {
		return false, err.Error()
	}
	ctx, cancel := context.WithTimeout(b.Context(), lives)
	defer cancel()
	_, err = p.Wait(ctx)
	if runs = ctx.Err() != nil; runs {
		if err := p.Kill(); err != nil {
			b.Fatal(err)
		}
		return true, ""
	}
	log, rerr := os.ReadFile(p.Log())
	lines := slices.DeleteFunc(strings.Split(string(log), "\n"),
		func(l string) bool { return !strings.HasPrefix(l, "E") && !strings.HasPrefix(l, "F") })
	return false, fmt.Sprint(err, rerr, strings.Join(lines[max(0, len(lines)-5):], "\n"))
}
