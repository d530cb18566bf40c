// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// greeting is the config of the example: one line of text.
type greeting struct{ Text string }

// lines decodes a greeting. A real codec is strict about far more; see YAML.
type lines struct{}

func (lines) Decode(key string, o configsync.Object) (greeting, lkg.Limits, error) {
	text, ok := o.Data[key]
	if !ok || strings.Contains(text, "\n") {
		return greeting{}, lkg.Limits{}, fmt.Errorf("key %q must hold one line", key)
	}
	return greeting{text}, lkg.Limits{CrashLoopThreshold: 2}, nil
}

// exit asks the process to end, so that whatever started it starts it again.
type exit struct{}

var errExit = errors.New("exit with code 0")

func (exit) Restart(context.Context, configsync.Change) error { return errExit }

// A process takes its config from a server: it is started, runs, and ends itself when there is a new config. Its next
// start uses that, on trial.
func Example() {
	ctx := context.Background()
	server, disk := &configsynctest.Server{}, &configsynctest.Disk{} // an API server and a checkpoint.Store in production
	life := func() {
		s, err := configsync.New(ctx, configsync.Options[greeting]{
			Version: "v1.0.0", Key: "greeting", Codec: lines{}, Default: func() greeting { return greeting{"built in"} },
			Store: disk, Source: server, Fetcher: server, Restarter: exit{},
		})
		if err != nil {
			fmt.Println("wiring:", err)
			return
		}
		active, err := s.Bootstrap(ctx, lkg.Exit{})
		if err != nil {
			fmt.Println("refusing to start:", err)
			return
		}
		fmt.Printf("%s: %q, on trial: %t\n", active.Verdict.Condition.Message, active.Config.Text, active.Verdict.OnTrial)
		if active.Ref.IsLocal() {
			fmt.Println("ended:", errors.Is(s.Run(ctx), errExit))
		}
	}

	cm := server.Put("kube-system", "greeting-1", map[string]string{"greeting": "hello"}, true)
	server.Name(&configsync.Spec{Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID})
	life()
	life()
	// Output:
	// using current (default): "built in", on trial: false
	// ended: true
	// using current (UID: 00000000-0000-4000-8000-000000000001): "hello", on trial: true
}
