// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// The page knows when its controller has heard from the API server last, in a cluster in which nothing happens, while the API server is frozen, and after that;
// and which cluster it is.
func TestPageKnowsWhetherItIsSo(t *testing.T) {
	t.Parallel()
	env := testenv.Start(t, testenv.Options{})
	must(t, env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	e2e.Apply(t, env.Config(), "../../manifests/controller/rbac.yaml")
	mayBegin(t, kubernetes.NewForConfigOrDie(env.Config()))
	leads := startWith(t, env, userConfig(t, env), func(c *exec.Cmd) { c.Args = append(c.Args, "--page-name=prod-eu-1") })
	leads.awaits("leads", `belay_leader{name="rollout-fleet"} 1`)
	waits := start(t, env, userConfig(t, env))
	waits.awaits("waits", `belay_leader{name="rollout-fleet"} 0`)
	quiet := func(age time.Duration) bool { return age >= 0 && age < 3*time.Second }
	for r, name := range map[*replica]string{leads: "prod-eu-1", waits: strings.TrimPrefix(env.Config().Host, "https://")} {
		if beat := r.heard("hears", quiet); beat.Name != name {
			t.Errorf("it is called %q, want %q", beat.Name, name)
		}
	}
	must(t, env.APIServer().Pause())
	for _, r := range []*replica{leads, waits} {
		r.heard("is deaf", func(age time.Duration) bool { return age > 8*time.Second })
	}
	must(t, env.APIServer().Resume())
	for _, r := range []*replica{leads, waits} {
		r.heard("hears again", quiet)
	}
}

// heard waits until the last word from the API server is as long ago as it should be, and returns that beat.
func (r *replica) heard(what string, so func(age time.Duration) bool) (beat page.Beat) {
	r.t.Helper()
	err := testproc.Poll(patience, func() (err error) {
		if beat, err = r.beat(); err != nil {
			return err
		}
		age := time.Duration(beat.Now-beat.Heard) * time.Millisecond
		if beat.Heard == 0 || !so(age) {
			return fmt.Errorf("it was heard %s ago: %+v", age, beat)
		}
		return nil
	})
	if err != nil {
		r.t.Fatalf("the replica on %s never %s: %v", r.listen, what, err)
	}
	return beat
}

// beat is the first one of the fleet page.
func (r *replica) beat() (page.Beat, error) {
	var b page.Beat
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.page+"/events", nil)
	if err != nil {
		return b, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return b, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			return b, json.Unmarshal([]byte(data), &b)
		}
	}
	return b, errors.New("the stream has ended without a beat")
}
