// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/durable"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// zoo makes an instance in each state.
func zoo(t *testing.T, c *cloud) []provider.CreateRequest {
	t.Helper()
	p := c.client()
	can := provider.AbilitiesOf(p)
	long := `"startMilliseconds": 3600000, "stopMilliseconds": 3600000`
	var rs []provider.CreateRequest
	for n, config := range []string{config, with(long), with(long), config, config, config, config, config, with(`"updateMilliseconds": 3600000`)} {
		rs = append(rs, want(n, config))
	}
	c.inject(providertest.Fault{Kind: providertest.StartFails, Skip: 6})
	for _, r := range rs[:8] {
		create(t, p, r)
	}
	c.inject(providertest.Fault{Kind: providertest.Partial})
	create(t, p, rs[8])
	for n, mode := range map[int]provider.Mode{2: provider.Destroy, 3: provider.Destroy, 4: provider.Retain} {
		if _, err := p.Delete(t.Context(), provider.DeleteRequest{Ref: provider.Ref{Token: rs[n].Token}, Cluster: "c1", Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := can.Power.Stop(t.Context(), provider.Ref{Token: rs[5].Token}); err != nil {
		t.Fatal(err)
	}
	u := rs[7].Desired
	u.Config, u.Versions.Kubelet = rs[8].Desired.Config, "v1.37.0"
	for _, n := range []int{7, 8} {
		r := provider.UpdateRequest{Ref: provider.Ref{Token: rs[n].Token}, Cluster: "c1", Digest: u.Digest(), Desired: u}
		if _, err := can.Updater.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := can.Group.Resize(t.Context(), "pool", 1, rs[0].Desired); err != nil {
		t.Fatal(err)
	}
	return rs
}

// Whatever state instances are in, another server that reads the directory sees the same, and goes on.
func TestRestart(t *testing.T) {
	c := newCloud(t)
	rs := zoo(t, c)
	before, err := c.admin.Instances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	was := c.inventory()
	c.restart()
	after, err := c.admin.Instances(t.Context())
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("after a restart: got %+v, %v, want %+v", after, err, before)
	}
	is := c.inventory()
	if was.Calls, is.Calls = nil, nil; !reflect.DeepEqual(was, is) || is.UsedTokens != 1 || is.Retained != 1 {
		t.Errorf("after a restart: got %+v, want %+v with a retained instance and a used-up token", is, was)
	}
	states := map[provider.State]bool{}
	for _, h := range after {
		states[h.State] = true
	}
	if len(states) != 6 {
		t.Errorf("got states %v, want all 6", states)
	}
	p := c.client()
	_, err = p.Create(t.Context(), rs[3])
	wantClass(t, "Create with a token that was used up before the restart", err, provider.Conflict)
	full := want(20, with(`"group": "pool"`))
	create(t, p, full)
	_, err = p.Create(t.Context(), want(21, with(`"group": "pool"`)))
	wantClass(t, "Create in a group that was full before the restart", err, provider.Stockout)
	c.pass(time.Hour)
	i, err := p.Get(t.Context(), provider.Ref{Token: rs[1].Token})
	if err != nil || i.State != provider.Running {
		t.Errorf("an hour later: got %+v, %v, want it Running", i, err)
	}
	_, err = p.Get(t.Context(), provider.Ref{Token: rs[2].Token})
	wantClass(t, "Get of what was leaving before the restart", err, provider.NotFound)
}

// R-MA-02, R-MA-24: a server that is killed before any operation on its files has done all of a call, or nothing of it,
// without a second call. An instance that is destroyed is there with its disk, or its token is used up; one that is
// adopted is the old or the new one, with the same disk.
func TestAllOrNothing(t *testing.T) {
	for _, row := range []struct {
		name      string
		begin     provider.Mode // how the instance is deleted before
		call      func(p provider.Provider, i provider.Instance) error
		none, all providertest.Inventory
	}{
		{"Destroy", "", func(p provider.Provider, i provider.Instance) error {
			_, err := p.Delete(t.Context(), provider.DeleteRequest{Ref: i.Ref(), Cluster: "c1", Mode: provider.Destroy})
			return err
		}, providertest.Inventory{Instances: 1, Disks: 1}, providertest.Inventory{UsedTokens: 1}},
		{"Adopt", provider.Retain, func(p provider.Provider, i provider.Instance) error {
			_, err := provider.AbilitiesOf(p).Adopter.Adopt(t.Context(), provider.AdoptRequest{From: i.Ref(), As: want(2, config)})
			return err
		}, providertest.Inventory{Retained: 1, Disks: 1}, providertest.Inventory{Instances: 1, Disks: 1, UsedTokens: 1}},
	} {
		got := map[bool]int{}
		for point, died := 0, true; died; point++ {
			c := newCloud(t)
			p := c.client()
			i := create(t, p, want(1, config))
			if row.begin != "" {
				remove(t, p, i.Token, row.begin)
			}
			c.inject(providertest.Fault{Kind: providertest.KillWrite, Skip: point})
			err := row.call(p, i)
			if died = c.died.Load(); died {
				c.restart()
			}
			is := c.inventory()
			is.Calls = nil
			done := reflect.DeepEqual(is, row.all)
			if got[done]++; !done && !reflect.DeepEqual(is, row.none) || (err == nil) == died || !died && !done {
				t.Errorf("%s, killed before operation %d: got %+v, error %v, want %+v or %+v", row.name, point, is, err, row.none, row.all)
			}
		}
		if got[false] < 4 || got[true] < 4 {
			t.Errorf("%s: %d times nothing was done and %d times all, want both at several operations", row.name, got[false], got[true])
		}
	}
}

// A state that is not understood is refused, and the file is named: nothing is guessed, and nothing is lost.
func TestStrangeFiles(t *testing.T) {
	token := want(1, config).Token
	for name, damage := range map[string]func(dir string) error{
		"instances/x.json": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "instances/x.json"), []byte("{"), 0o600)
		},
		"used/x.json": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "used/x.json"), []byte(`{"token": "x", "cluster": "", "more": 1}`), 0o600)
		},
		`"y" in "used"`: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "used/y.json"), []byte(`{"token": "x", "cluster": ""}`), 0o600)
		},
		token + ".root": func(dir string) error { return os.Remove(filepath.Join(dir, "disks", token+".root.json")) },
		"more than one value": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "used/x.json"), []byte(`{"token": "x", "cluster": ""} {}`), 0o600)
		},
	} {
		c := newCloud(t)
		create(t, c.client(), want(1, config))
		if err := c.current().Close(); err != nil {
			t.Fatal(err)
		}
		if err := damage(c.dir); err != nil {
			t.Fatal(err)
		}
		_, err := providertest.NewServer(providertest.ServerOptions{Dir: c.dir})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}

// What a crash has left unfinished goes when the directory is opened: files that were being written, and disks that no
// instance has yet.
func TestUnfinishedFilesGo(t *testing.T) {
	c := newCloud(t)
	create(t, c.client(), want(1, config))
	for _, name := range []string{"instances", "disks", "used", "groups", "disks/x.root.json"} {
		if !strings.Contains(name, ".") {
			name = filepath.Join(name, durable.TempName("x.json"))
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(`{"id": "x.ro`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.restart()
	var names []string
	err := filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, filepath.Base(path))
		}
		return err
	})
	token := want(1, config).Token
	if want := fmt.Sprint([]string{token + ".root.json", token + ".json", "lock"}); err != nil || fmt.Sprint(names) != want {
		t.Errorf("got %v, %v, want %v", names, err, want)
	}
	if i := c.inventory(); i.Instances != 1 || i.Disks != 1 {
		t.Errorf("got %+v, want an instance with its disk", i)
	}
}

// One server at a time has the directory. A directory is needed.
func TestOneServer(t *testing.T) {
	c := newCloud(t)
	if s, err := providertest.NewServer(providertest.ServerOptions{Dir: c.dir}); err == nil || !strings.Contains(err.Error(), c.dir) {
		t.Errorf("a second server: got %v, %v, want an error that names %q", s, err, c.dir)
	}
	if s, err := providertest.NewServer(providertest.ServerOptions{}); err == nil {
		t.Errorf("no directory: got %v, want an error", s)
	}
	c.restart()
	tokens(t, c.client())
}

// After a write that failed nothing is answered until the state was read again: what is in the files is not known.
func TestWriteFails(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, config)
	if err := os.RemoveAll(filepath.Join(c.dir, "disks")); err != nil {
		t.Fatal(err)
	}
	_, err := p.Create(t.Context(), r)
	wantClass(t, "Create without a place for disks", err, provider.Unavailable)
	_, err = p.Get(t.Context(), provider.Ref{Token: r.Token})
	wantClass(t, "Get after that", err, provider.Unavailable)
	c.restart()
	create(t, p, r)
}

// The calls that are counted are those of the provider, by method: what an admin asks is none.
func TestCallsAreCounted(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	create(t, p, want(1, config))
	for range 3 {
		tokens(t, p)
	}
	c.inventory()
	_, err := c.admin.Instances(t.Context())
	if got := c.inventory().Calls; err != nil || !reflect.DeepEqual(got, map[string]int64{"Create": 1, "List": 3}) {
		t.Errorf("got %v, %v, want 1 Create and 3 List", got, err)
	}
}
