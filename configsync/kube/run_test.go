// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// agentOptions are those of an agent on the node "n" over a disk in memory.
func agentOptions(disk *configsynctest.Disk, work workFunc) kube.AgentOptions[agentConfig] {
	return kube.AgentOptions[agentConfig]{
		Node: "n", Work: work,
		Syncer: configsync.Options[agentConfig]{
			Version: "v1", Key: "agent", Codec: configsync.YAML[agentConfig](configsync.YAMLOptions{}),
			Default: func() agentConfig { return agentConfig{Workers: 1} },
			Store:   disk, Restarter: restart.Exit{Code: 75}, BootID: "boot-1",
		},
	}
}

// TestAgentEnds: without an API server an agent works on its local config. However it ends, no work is left behind, and
// the next start knows whether that was planned.
func TestAgentEnds(t *testing.T) {
	broken := errors.New("the disk of the work is full")
	for name, c := range map[string]struct {
		work func(ctx context.Context, stop func()) error
		want error
		next lkg.Cause
	}{
		"its context ends": {func(ctx context.Context, stop func()) error {
			stop()
			<-ctx.Done()
			return context.Cause(ctx)
		}, nil, lkg.CausePlanned},
		"its context ends and the work fails": {func(ctx context.Context, stop func()) error {
			stop()
			<-ctx.Done()
			return broken
		}, broken, lkg.CausePlanned},
		"the work is done":    {func(context.Context, func()) error { return nil }, nil, lkg.CausePlanned},
		"the work has failed": {func(context.Context, func()) error { return broken }, broken, lkg.CauseUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &configsynctest.Disk{}
			config := impostor(t, says(500, "{}"))
			ctx, stop := context.WithCancel(deadline(t))
			defer stop()
			working := 0
			work := func(ctx context.Context, a configsync.Active[agentConfig]) error {
				working++
				defer func() { working-- }()
				if a.Config.Workers != 1 {
					t.Errorf("the work has %d workers, want the local config", a.Config.Workers)
				}
				return c.work(ctx, stop)
			}
			err := kube.RunAgent(ctx, config, agentOptions(disk, work))
			if !errors.Is(err, c.want) || working != 0 {
				t.Errorf("got %v with %d at work, want %v and none", err, working, c.want)
			}
			done := func(context.Context, configsync.Active[agentConfig]) error { return nil }
			must(t, kube.RunAgent(deadline(t), config, agentOptions(disk, done)))
			st, err := lkg.Load(t.Context(), disk, "v1")
			must(t, err)
			if got := st.Starts[len(st.Starts)-1].Cause; got != c.next {
				t.Errorf("the next start is %s, want %s", got, c.next)
			}
		})
	}
}

// TestAgentTakesUpAnotherConfig: with a Source and a Fetcher of its user's own, an agent ends its work for another
// config with the error of the Restarter, and its user's Reporter has each report.
func TestAgentTakesUpAnotherConfig(t *testing.T) {
	disk, rec, server := &configsynctest.Disk{}, &configsynctest.Recorder{}, &configsynctest.Server{}
	o := server.Put("ns", "cm", map[string]string{"agent": "workers: 8\n"}, true)
	server.Name(&configsync.Spec{Namespace: "ns", Name: "cm", UID: o.UID})
	var used []int
	options := agentOptions(disk, func(ctx context.Context, a configsync.Active[agentConfig]) error {
		if used = append(used, a.Config.Workers); a.Config.Workers == 8 {
			return nil
		}
		<-ctx.Done()
		return errors.New("it was cut short")
	})
	options.Syncer.Source, options.Syncer.Fetcher, options.Syncer.Reporter = server, server, rec
	if err := kube.RunAgent(deadline(t), impostor(t, says(500, "{}")), options); restart.Code(err) != 75 {
		t.Errorf("got %v, want the error of the Restarter", err)
	}
	must(t, kube.RunAgent(deadline(t), impostor(t, says(500, "{}")), options))
	if len(used) != 2 || used[0] != 1 || used[1] != 8 || rec.Last().Active.UID != o.UID {
		t.Errorf("worked with %v workers and reported %+v, want 1, then 8 of the ConfigMap", used, rec.Last().Active)
	}
}

// TestAgentAsksForItsOwnObjects: an agent reads its NodeConfig, and its Node where it is to report the condition, by
// the HTTP client that it is given.
func TestAgentAsksForItsOwnObjects(t *testing.T) {
	const nodeConfig, node = "/apis/belay.dev/v1alpha1/nodeconfigs/n", "/api/v1/nodes/n"
	for want, condition := range map[string]bool{nodeConfig: false, node: true} {
		var mu sync.Mutex
		asked, there := map[string]bool{}, make(chan struct{})
		config := impostor(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if !asked[r.URL.Path] && r.URL.Path == want {
				close(there)
			}
			asked[r.URL.Path] = true
			says(404, "{}")(w, r)
		})
		transport := &countingTransport{}
		options := agentOptions(&configsynctest.Disk{}, func(ctx context.Context, _ configsync.Active[agentConfig]) error {
			select {
			case <-there:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		options.NodeCondition, options.HTTP = condition, &http.Client{Transport: transport}
		must(t, kube.RunAgent(deadline(t), config, options))
		mu.Lock()
		if asked[node] != condition || transport.requests.Load() == 0 {
			t.Errorf("asked for %v in %d requests of the HTTP client, want the Node: %t",
				asked, transport.requests.Load(), condition)
		}
		mu.Unlock()
	}
}

// TestAgentWithoutOptions: one error names all that is missing.
func TestAgentWithoutOptions(t *testing.T) {
	var missing *option.Error
	err := kube.RunAgent(t.Context(), nil, kube.AgentOptions[agentConfig]{})
	want := "config AgentOptions.Node AgentOptions.Work AgentOptions.Syncer.Store AgentOptions.Syncer.Restarter"
	if !errors.As(err, &missing) || strings.Join(missing.Missing, " ") != want {
		t.Errorf("got %v, want an error that names %s", err, want)
	}
	options := agentOptions(&configsynctest.Disk{}, func(context.Context, configsync.Active[agentConfig]) error {
		t.Error("the work was called")
		return nil
	})
	options.Syncer.Codec = nil
	if err := kube.RunAgent(t.Context(), impostor(t, says(500, "{}")), options); !errors.As(err, &missing) ||
		strings.Join(missing.Missing, " ") != "Options.Codec" {
		t.Errorf("got %v, want an error that names Options.Codec", err)
	}
	options.Node = "n/../m"
	err = kube.RunAgent(t.Context(), impostor(t, says(500, "{}")), options)
	if err == nil || !strings.Contains(err.Error(), `"n/../m"`) {
		t.Errorf("got %v, want an error that names the node", err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	options = agentOptions(&configsynctest.Disk{}, options.Work)
	if err := kube.RunAgent(over, impostor(t, says(500, "{}")), options); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v from a context that has ended, want that", err)
	}
}

// TestProgramIsShort: what a user writes for an agent has at most 20 lines.
func TestProgramIsShort(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "example_program_test.go", nil, parser.SkipObjectResolution)
	must(t, err)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "runFromAPIServer" {
			if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1; n > 20 {
				t.Errorf("runFromAPIServer has %d lines, want 20: shorten what RunAgent takes, not the example", n)
			}
			return
		}
	}
	t.Error("there is no runFromAPIServer")
}
