// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

// The log can be had as JSON, with what a feature gate lets through, and the metrics say what the process takes.
func TestComponentFlagsAndMetrics(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testenv.WriteKubeconfig(kubeconfig, &rest.Config{Host: "https://127.0.0.1:1"})) // nobody answers, and nothing is asked here
	r := &replica{t: t, log: &testproc.Buffer{}, listen: fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)), done: make(chan struct{})}
	errors := &testproc.Buffer{}
	r.cmd = exec.Command(programs.Path(t, "github.com/belayproject/belay/examples/controller"), "--kubeconfig="+kubeconfig, "--listen="+r.listen,
		"--logging-format=json", "--feature-gates=LoggingAlphaOptions=true", "--log-json-split-stream")
	r.cmd.Stdout, r.cmd.Stderr = r.log, errors
	r.runs()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("on its standard error:\n%s", errors)
		}
	})
	for _, series := range []string{"process_resident_memory_bytes ", "process_cpu_seconds_total ", "process_open_fds ", "go_goroutines ", "go_memstats_heap_inuse_bytes "} {
		r.awaits("shows what it takes", "\n"+series)
	}
	r.stops()
	if err := startedIn(r.log.String()); err != nil {
		t.Error(err)
	}
}

// startedIn looks for the first line of a log as JSON.
func startedIn(log string) error {
	for line := range strings.Lines(log) {
		var said struct{ Msg, Listen string }
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			return fmt.Errorf("a line of the log is no JSON: %w", err)
		}
		if said.Msg == "Started controller" && said.Listen != "" {
			return nil
		}
	}
	return fmt.Errorf("the log has no line about the start")
}
