// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
	"github.com/belayproject/belay/machine/provider/providertest"
)

const fleetSize = 6

// killsEnv is how often controllers are killed, at least; without it a tenth of the proof is made.
const killsEnv = "BELAY_MACHINE_KILLS"

func minKills(t *testing.T) int64 {
	text := os.Getenv(killsEnv)
	if text == "" {
		return 12
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", killsEnv, err)
	}
	return n
}

// R-MA-02: the controller is killed by SIGKILL at random, over a hundred times in make machine-proof, while machines of a cloud are made, updated in place, replaced and deleted. At
// no time has a machine two instances that are alive, and nothing is left: no instance, no disk, no Node, no object.
func TestKilledOnTheFakeCloud(t *testing.T) {
	t.Parallel()
	server, err := providertest.NewServer(providertest.ServerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(server)
	defer cloud.Close()
	admin, err := providertest.NewAdmin(providertest.Options{URL: cloud.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, fakeEnv+"="+cloud.URL)
	s.config = func(size string) any {
		return providertest.Config{
			Kind: provider.Kind{APIVersion: providertest.APIVersion, Kind: providertest.KindName}, Size: size, StartMilliseconds: 150,
			StopMilliseconds: 50, ReleaseMilliseconds: 50, UpdateMilliseconds: 100, Updates: map[string]provider.Method{"size": provider.Replace}}
	}
	s.sizes, s.least = []string{"small", "large"}, 100*time.Millisecond
	s.instances = func(ctx context.Context) ([]provider.Instance, error) {
		hosts, err := admin.Instances(ctx)
		var all []provider.Instance
		for _, h := range hosts {
			all = append(all, h.Instance)
		}
		return all, err
	}
	s.play()
	left, err := admin.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills, %d times a Node came; the cloud was asked %v", s.kills, s.joined, left.Calls)
	if left.Instances != 0 || left.Disks != 0 {
		t.Errorf("R-MA-02: %d instances and %d disks are left", left.Instances, left.Disks)
	}
}

// R-MA-02: the same with machines that are processes on this host: no process has another one of the same machine beside it, and none is left.
func TestKilledWithLocalMachines(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newStage(t, localEnv+"="+root)
	s.config = func(seconds string) any {
		return local.Config{Kind: provider.Kind{APIVersion: local.APIVersion, Kind: local.KindName}, Command: []string{"sleep", seconds},
			Namespaces: local.None, GraceSeconds: 1}
	}
	s.sizes, s.least = []string{"1000001", "1000002"}, 400*time.Millisecond // a process takes longer to make than an entry of a table
	p, err := local.New(t.Context(), local.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what a failure has left
		for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			left, err := p.List(context.WithoutCancel(t.Context()), provider.Scope{Cluster: s.namespace})
			if err != nil || len(left) == 0 {
				break
			}
			for _, i := range left {
				_, _ = p.Delete(context.WithoutCancel(t.Context()), provider.DeleteRequest{Ref: i.Ref(), Mode: provider.Destroy, Cluster: s.namespace})
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	s.instances = func(ctx context.Context) ([]provider.Instance, error) {
		return p.List(ctx, provider.Scope{Cluster: s.namespace})
	}
	s.tokens = map[string]bool{}
	s.play()
	t.Logf("%d kills, %d times a Node came, %d tokens", s.kills, s.joined, len(s.tokens))
	for token := range s.tokens {
		if left := testproc.Naming("BELAY_MACHINE=" + token); len(left) > 0 {
			t.Errorf("R-MA-02: processes are left: %v", left)
		}
	}
}

// play kills controllers while rounds of a fleet's life go on, and then checks that nothing is left.
func (s *stage) play() {
	s.t.Helper()
	s.watch()
	stop := make(chan struct{})
	ended := make(chan error)
	least := minKills(s.t)
	go func() { ended <- s.killing(stop, least) }()
	random := rand.New(rand.NewPCG(7, 7))
	for round := 0; s.killed.Load() < least; round++ {
		s.round(round, random)
	}
	close(stop)
	s.must(<-ended)
	s.kills = int(s.killed.Load())
	s.nothingLeft()
}

// round is the life of a fleet.
func (s *stage) round(round int, random *rand.Rand) {
	s.t.Helper()
	var names []string
	for i := range fleetSize {
		names = append(names, fmt.Sprintf("m%d-%d", round, i))
		s.create(names[i], s.sizes[0])
	}
	s.all(names, "running", s.isRunning)
	for _, name := range names[:fleetSize/2] {
		s.edit(name, map[string]any{"versions": map[string]any{"kubelet": "v1.36.2"}})
	}
	for _, name := range names[fleetSize/2:] {
		s.edit(name, map[string]any{"providerConfig": s.raw(s.sizes[1])})
	}
	if random.IntN(2) == 0 { // else they are deleted in the middle of that
		s.all(names, "changed", s.isRunning)
	}
	for _, name := range names {
		s.delete(name)
	}
	s.all(names, "gone", s.isGone)
}

// killing has a controller run at any time, and kills it a while after it has begun to work, so many times; the last one lives until the test ends.
func (s *stage) killing(stop <-chan struct{}, times int64) error {
	random := rand.New(rand.NewPCG(1, 2))
	for {
		c, err := s.spawn()
		if err != nil {
			return err
		}
		if s.killed.Load() >= times {
			<-stop
			s.t.Cleanup(func() { s.must(c.end()) })
			return nil
		}
		select {
		case <-stop:
			return c.end()
		case <-time.After(s.least + time.Duration(random.IntN(700))*time.Millisecond):
		}
		if err := c.end(); err != nil {
			return err
		}
		s.killed.Add(1)
	}
}

// A child is a controller as a process.
type child struct{ cmd *exec.Cmd }

func (s *stage) spawn() (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(slices.Clone(os.Environ()), kubeconfigEnv+"="+s.env.Kubeconfig(), namespaceEnv+"="+s.namespace, s.of)
	s.env.Mark(cmd)
	cmd.Stderr = &s.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		_ = cmd.Wait() // it says why in the log
		return nil, fmt.Errorf("a controller did not start: %w: %s", err, s.log.String())
	}
	return &child{cmd}, nil
}

// end kills it.
func (c *child) end() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = c.cmd.Wait() // it was killed
	return nil
}

func (s *stage) raw(size string) map[string]any {
	data, err := json.Marshal(s.config(size))
	s.must(err)
	var fields map[string]any
	s.must(json.Unmarshal(data, &fields))
	return fields
}
