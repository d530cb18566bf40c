// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// R-CS-61: what the next start would do is told by the function that decides there, without a write.
func TestExplainTellsWhatTheNextStartDoes(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "crash-2")
		n.wait(4 * time.Minute)
		writes := n.disk.Writes()
		got, err := configsync.Explain(n.t.Context(), n.disk, n.options2())
		if err != nil {
			t.Fatal(err)
		}
		if got.Next.Use.UID != v1.UID || got.Next.Rejected == nil || got.Next.Rejected.Ref.UID != v2.UID {
			t.Errorf("the next start uses %+v because of %+v, want v1 because v2 is rejected", got.Next.Use, got.Next.Rejected)
		}
		if got.Next.Condition != n.rec.Last().Condition {
			t.Errorf("condition %+v, want the one that is reported, %+v", got.Next.Condition, n.rec.Last().Condition)
		}
		if n.disk.Writes() != writes {
			t.Error("Explain wrote to the disk")
		}
		o := n.options2()
		n.init = "invalid-init"
		if got, err = configsync.Explain(n.t.Context(), n.disk, o); err != nil || got.Next.Refuse == nil {
			t.Errorf("Explain with a bad init config = %+v, %v; want a refusal in it", got.Next, err)
		}
	})
}

// A missing part is named, all missing parts at once.
func TestNewNamesMissingOptions(t *testing.T) {
	_, err := configsync.New(t.Context(), configsync.Options[string]{Source: newNode(t).server, RetryMin: -time.Second})
	if err == nil {
		t.Fatal("New without parts = nil, want an error")
	}
	for _, field := range []string{"Version", "Key", "Codec", "Init or Options.Default", "Store", "Fetcher", "Restarter", "RetryMin"} {
		if !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("error does not name Options.%s:\n%v", field, err)
		}
	}
	o := newNode(t).options2()
	o.Bounds = lkg.Bounds{MinTrial: time.Hour, MaxTrial: time.Minute}
	if _, err := configsync.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Bounds") {
		t.Errorf("New with MinTrial above MaxTrial = %v, want an error that names Bounds", err)
	}
}

// R-CS-84, C-12: each field of the config that the next start uses is told with its origin, and never with its value.
func TestExplainTellsTheOriginOfEachField(t *testing.T) {
	type config struct {
		Sizes  struct{ Small, Large int } `json:"sizes"`
		Names  []string                   `json:"names"`
		Secret string                     `json:"secret"`
	}
	text := "sizes: {Small: 1, Large: 2}\nnames: [a, b]\nsecret: canary-9137\n"
	o := configsync.Options[config]{
		Version: "v1", Key: "config", BootID: "boot", Codec: layered[config]{configsync.YAML[config](configsync.YAMLOptions{})},
		Init: func(context.Context) (configsync.Object, error) {
			return configsync.Object{Data: map[string]string{"config": text}}, nil
		},
	}
	got, err := configsync.Explain(t.Context(), &configsynctest.Disk{}, o)
	if err != nil {
		t.Fatal(err)
	}
	local := "the local config (init)"
	want := []configsync.Field{{Path: "names", Origin: local}, {Path: "secret", Origin: local}, {Path: "sizes.Large", Origin: "per-node overlay"}, {Path: "sizes.Small", Origin: local}}
	if !slices.Equal(got.Fields, want) {
		t.Errorf("fields %+v, want %+v", got.Fields, want)
	}
	if strings.Contains(fmt.Sprintf("%+v", got), "canary-9137") {
		t.Error("the explanation holds a value of the payload")
	}
	o.Init = func(context.Context) (configsync.Object, error) { return configsync.Object{}, errors.New("no") }
	if got, err = configsync.Explain(t.Context(), &configsynctest.Disk{}, o); err != nil || got.Fields != nil {
		t.Errorf("of a start that refuses: fields %v, %v; want none", got.Fields, err)
	}
}

// layered is a codec that knows that one field comes from an overlay.
type layered[T any] struct{ configsync.Codec[T] }

func (layered[T]) Origins(string, configsync.Object) (map[string]string, error) {
	return map[string]string{"sizes.Large": "per-node overlay"}, nil
}

// Names of a payload do not grow an explanation without bound.
func TestFieldsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 2 * configsync.MaxFields {
		fmt.Fprintf(&text, "f%d: 1\n", i)
	}
	fmt.Fprintf(&text, "%s: 1\n", strings.Repeat("a", 900))
	o := configsync.Options[map[string]int]{
		Version: "v1", Key: "config", BootID: "boot", Codec: loose{},
		Init: func(context.Context) (configsync.Object, error) {
			return configsync.Object{Data: map[string]string{"config": text.String()}}, nil
		},
	}
	got, err := configsync.Explain(t.Context(), &configsynctest.Disk{}, o)
	if err != nil || len(got.Fields) != configsync.MaxFields {
		t.Fatalf("%d fields, %v; want %d", len(got.Fields), err, configsync.MaxFields)
	}
	for _, f := range got.Fields {
		if len(f.Path) > 256 {
			t.Errorf("a path of %d bytes, want at most 256", len(f.Path))
		}
	}
}

// loose takes everything.
type loose struct{}

func (loose) Decode(string, configsync.Object) (map[string]int, lkg.Limits, error) {
	return nil, lkg.Limits{}, nil
}

// A proof that remembers is asked by Explain for what it remembers, alone: nothing runs where somebody only looks.
func TestExplainAsksProofsForWhatTheyRemember(t *testing.T) {
	p := &remembering{}
	onNodeWith(t, func(o *configsync.Options[string]) { o.Proofs = []configsync.Inspector{p} }, func(n *node) {
		v1 := n.push("v1", "good-1")
		n.wait(time.Minute)
		asked := p.asked.Load()
		if got, err := configsync.Explain(n.t.Context(), n.disk, n.options2()); err != nil || got.Next.Use.UID != v1.UID || p.asked.Load() != asked {
			t.Errorf("Explain = %+v, %v after %d runs, want v1 without one", got.Next, err, p.asked.Load()-asked)
		}
		p.forgot.Store(true)
		got, err := configsync.Explain(n.t.Context(), n.disk, n.options2())
		if err != nil || got.Next.Use.UID != "" || got.Next.Rejected != nil || p.asked.Load() != asked {
			t.Errorf("Explain = %+v, %v after %d runs, want the local config, and nothing rejected: what nobody remembers is undecided",
				got.Next, err, p.asked.Load()-asked)
		}
	})
}

// remembering is a proof that accepts all.
type remembering struct {
	asked  atomic.Int32
	forgot atomic.Bool
}

func (p *remembering) Inspect(context.Context, string, configsync.Object) error {
	p.asked.Add(1)
	return nil
}

func (p *remembering) Recall(lkg.Getter) configsync.Inspector { return memory{p} }

type memory struct{ p *remembering }

func (m memory) Inspect(context.Context, string, configsync.Object) error {
	if m.p.forgot.Load() {
		return configsync.ErrUndecided
	}
	return nil
}
