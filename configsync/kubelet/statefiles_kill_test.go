// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/tier"
)

// errFault is what a call that fails returns.
var errFault = errors.New("the disk fails")

// A killed is what a kill of the agent unwinds the stack with.
type killed struct{}

// A boundWorld is a node: the kubelet's disk and the agent's records, both of which can be cut at any step.
type boundWorld struct {
	files, durable map[string]string // the disk as it is read, and as a power cut leaves it
	pending        []pendingOp       // not durable yet, in order
	record         []byte
	step           int
	at             int // the step of the fault; negative: none
	fault          boundFault
	made           int
	end            kubeletEnd // how the run before ended
}

// A boundFault is what happens at a step.
type boundFault struct {
	name   string
	after  bool // the step was done
	kill   bool // the process ends
	power  bool // and so does the machine
	record bool // calls of the records fail, for faultSteps from the step on
	later  int  // the process ends that many steps later
}

// faultSteps are as many as two starts take at most while the records fail.
const faultSteps = 12

var boundFaults = []boundFault{
	{name: "killed before", kill: true}, {name: "killed after", kill: true, after: true},
	{name: "power cut before", kill: true, power: true},
	{name: "power cut after", kill: true, power: true, after: true},
	{name: "records fail", record: true}, {name: "records fail and land", record: true, after: true},
	{name: "records fail, then killed", record: true, kill: true, later: faultSteps + 2},
	{name: "records fail, then killed soon after", record: true, kill: true, later: faultSteps + 5},
}

type pendingOp struct {
	dirs  map[string]bool
	apply func(map[string]string)
}

func newBoundWorld(at int, f boundFault) *boundWorld {
	files := map[string]string{"pods/p1/etc-hosts": ""}
	return &boundWorld{files: files, durable: maps.Clone(files), at: at, fault: f}
}

// takeStep does one step, and the fault at it.
func (w *boundWorld) takeStep(isRecord bool, do func() error) error {
	n := w.step
	w.step++
	switch f := w.fault; {
	case f.record && isRecord && w.at >= 0 && n >= w.at && n < w.at+faultSteps:
		if f.after {
			return errors.Join(do(), errFault)
		}
		return errFault
	case n != w.at+f.later || !f.kill:
		return do()
	case f.after:
		if err := do(); err != nil {
			return err
		}
	}
	panic(killed{})
}

// cutPower leaves of what is not durable the first n changes.
func (w *boundWorld) cutPower(n int) {
	for _, op := range w.pending[:min(n, len(w.pending))] {
		op.apply(w.durable)
	}
	w.pending, w.files = nil, maps.Clone(w.durable)
}

func (w *boundWorld) change(apply func(map[string]string), names ...string) {
	apply(w.files)
	dirs := map[string]bool{}
	for _, n := range names {
		dirs[path.Dir(n)] = true
	}
	w.pending = append(w.pending, pendingOp{dirs, apply})
}

func (w *boundWorld) readFile(name string) ([]byte, error) {
	if text, ok := w.files[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (w *boundWorld) hasFile(name string) (bool, error) {
	for file := range w.files {
		if file == name || strings.HasPrefix(file, name+"/") {
			return true, nil
		}
	}
	return false, nil
}

func (w *boundWorld) findFiles(pattern string) (out []string, err error) {
	for name := range w.files {
		if ok, err := path.Match(pattern, name); err != nil {
			return nil, err
		} else if ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (w *boundWorld) renameFile(from, to string) error {
	return w.takeStep(false, func() error {
		if _, ok := w.files[from]; !ok {
			return fs.ErrNotExist
		}
		w.change(func(files map[string]string) {
			if text, ok := files[from]; ok {
				files[to] = text
				delete(files, from)
			}
		}, from, to)
		return nil
	})
}

func (w *boundWorld) makeDir(string) error { return w.takeStep(false, func() error { return nil }) }

// syncDir makes the changes durable all of whose directories are synced, and what comes before them.
func (w *boundWorld) syncDir(name string) error {
	return w.takeStep(false, func() error {
		last := 0
		for i, op := range w.pending {
			if delete(op.dirs, name); len(op.dirs) == 0 {
				last = i + 1
			}
		}
		for _, op := range w.pending[:last] {
			op.apply(w.durable)
		}
		w.pending = w.pending[last:]
		return nil
	})
}

func (w *boundWorld) writeFile(name string, text []byte) error {
	return w.takeStep(false, func() error {
		w.change(func(files map[string]string) { files[name] = string(text) })
		return nil
	})
}

func (w *boundWorld) removeFile(name string) error {
	return w.takeStep(false, func() error {
		w.change(func(files map[string]string) { delete(files, name) })
		return nil
	})
}

func (w *boundWorld) closeRoot() error { return nil }

// Get and Put are the agent's records: what they have returned is durable.
func (w *boundWorld) Get(context.Context, string) ([]byte, error) {
	if w.record == nil {
		return nil, fs.ErrNotExist
	}
	return w.record, nil
}

func (w *boundWorld) Put(_ context.Context, _ string, payload []byte) error {
	return w.takeStep(true, func() error {
		w.record = slices.Clone(payload)
		return nil
	})
}

// A stateText is what the kubelet of the world writes: who wrote it, and under what.
type stateText struct {
	PolicyName  string           `json:"policyName,omitempty"`
	UIDMappings []map[string]any `json:"uidMappings,omitempty"`
	Under       string           `json:"under"`
	Made        int              `json:"made"`
}

// startKubelet is a start of the kubelet with a config: it ends with an error where a file was written under
// another one.
func (w *boundWorld) startKubelet(c kubeletConfig) error {
	for _, b := range allBindings() {
		v := b.valueIn(c)
		if v == (boundValue{}) {
			continue
		}
		name := strings.ReplaceAll(b.file, "*", "p1")
		under := fmt.Sprintf("%+v", v)
		text, ok := w.files[name]
		if !ok {
			w.made++
			s := stateText{Under: under, Made: w.made}
			if b.length.path != "" {
				var n int64
				_ = json.Unmarshal([]byte(v.Policy), &n)
				s.UIDMappings = []map[string]any{{"hostId": n, "length": n}}
			} else {
				s.PolicyName = v.Policy
			}
			raw, err := json.Marshal(s)
			if err != nil {
				return err
			}
			w.files[name], w.durable[name] = string(raw), string(raw)
			continue
		}
		var s stateText
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if s.Under != under {
			return fmt.Errorf("%s was written under %s, this is %s", name, s.Under, under)
		}
	}
	return nil
}

// boundConfigs are configs that bind files in different ways.
func boundConfigs(t testing.TB) []kubeletConfig {
	t.Helper()
	var out []kubeletConfig
	for _, doc := range []string{
		``, `{"cpuManagerPolicy":"static","kubeReserved":{"cpu":"500m"}}`,
		`{"cpuManagerPolicy":"static","reservedSystemCPUs":"1","userNamespaces":{"idsPerPod":131072}}`,
		`{"memoryManagerPolicy":"Static","reservedMemory":[{"numaNode":0,"limits":{"memory":"101Mi"}}]}`,
		`{"memoryManagerPolicy":"Static","cpuManagerPolicy":"static",` +
			`"reservedMemory":[{"numaNode":0,"limits":{"memory":"201Mi"}}]}`,
	} {
		c, err := readConfig([]byte(doc), nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// prepare prepares a start; it reports whether the agent was killed in it.
func (w *boundWorld) prepare(c kubeletConfig) (dead bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
		}
	}()
	_, err = prepareFiles(context.Background(), w, w, c, w.end)
	return false, err
}

// A boundLife is one history: configs that the node is started with, a fault, and the config that is chosen after a
// kill.
type boundLife struct {
	starts  []int
	then    int
	kept    int // of what is not durable at a power cut
	at      int
	fault   boundFault
	configs []kubeletConfig
}

// liveThrough goes through the history; hit reports whether the fault came.
func (l boundLife) liveThrough() (hit bool, err error) {
	w := newBoundWorld(l.at, l.fault)
	for _, n := range l.starts {
		dead, err := w.prepare(l.configs[n])
		if dead {
			if l.fault.power {
				w.cutPower(l.kept)
			}
			n = l.then
			_, err = w.prepare(l.configs[n])
		}
		if err == nil {
			err = w.startKubelet(l.configs[n])
		}
		if err != nil {
			return true, fmt.Errorf("starts %v, %s at step %d, then config %d, %d changes kept: %w",
				l.starts, l.fault.name, l.at, l.then, l.kept, err)
		}
	}
	return w.step > l.at, nil
}

// L-CS-40: whatever the configs and whenever the agent is killed, the power fails or its records do, no kubelet is
// started with a file that stops it.
func TestStateFilesThroughKillsAtEachStep(t *testing.T) {
	configs, whole := boundConfigs(t), tier.RunsWhole(t)
	for _, f := range boundFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			lives := 0
			for a := range configs {
				for b := range configs {
					for c := range configs {
						if c == (b+1)%len(configs) || whole {
							lives += liveWithFaults(t, boundLife{starts: []int{a, b, c, a}, fault: f, configs: configs})
						}
					}
				}
			}
			t.Logf("%d lives", lives)
			if lives < 500 {
				t.Errorf("%d lives, want 500 at least", lives)
			}
		})
	}
}

// liveWithFaults has the fault come at each step of a history, and counts the lives.
func liveWithFaults(t *testing.T, l boundLife) (lives int) {
	t.Helper()
	thens, keeps := len(l.configs), 3
	if !l.fault.kill {
		thens = 1
	}
	if !l.fault.power {
		keeps = 1
	}
	for l.at = 0; ; l.at++ {
		hit := false
		for l.then = range thens {
			for keep := range keeps {
				l.kept = []int{0, 1, 9}[keep]
				came, err := l.liveThrough()
				if err != nil {
					t.Fatal(err)
				}
				hit = hit || came
				lives++
			}
		}
		if !hit {
			return lives
		}
	}
}
