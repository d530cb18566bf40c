// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/resourceversion"
)

func newRegistry() *registry {
	return &registry{memories: map[key]*memory{}, locks: map[key]*passLock{}, waiting: map[key]interest{}, asked: map[question]bool{},
		written: map[string]*corev1.Node{}, marks: map[string]decodedMark{}, watchers: map[int]func(string){}}
}

// admit waits until no pass is under way that this one may not run beside, or ctx ends: for every mode another one of the same holder over
// the node. Those of other holders keep each other out too, since they evict the same pods; but a hold touches no pod, and what it has to
// renew is not to wait for anybody's slow requests. Its few writes to the Node test what they were decided on, like all.
func (g *registry) admit(ctx context.Context, r Request) (leave func(), err error) {
	mine, err := g.lock(ctx, key{r.Node, r.Holder})
	if err != nil || r.Mode == Hold {
		return mine, err
	}
	all, err := g.lock(ctx, key{node: r.Node})
	if err != nil {
		mine()
		return nil, err
	}
	return func() { all(); mine() }, nil
}

// lock waits until nobody has the lock, or ctx ends. It is not given to whoever comes with one that has ended.
func (g *registry) lock(ctx context.Context, k key) (unlock func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("beginning a pass over node %q: %w", k.node, ctx.Err())
	}
	g.mu.Lock()
	l := g.locks[k]
	if l == nil {
		l = &passLock{held: make(chan struct{}, 1)}
		g.locks[k] = l
	}
	l.users++
	g.mu.Unlock()
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; g.leave(k, l) }, nil
	case <-ctx.Done():
		g.leave(k, l)
		return nil, fmt.Errorf("waiting for another pass over node %q: %w", k.node, ctx.Err())
	}
}

func (g *registry) leave(k key, l *passLock) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(g.locks, k)
	}
}

// recall returns what is remembered, or a new memory where that was of another maintenance.
func (g *registry) recall(r Request) *memory {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := key{r.Node, r.Holder}
	m := g.memories[k]
	if m == nil || (m.maintenance != r.Maintenance && r.Mode != Release) {
		before := m
		m = newMemory(r, "")
		if before != nil {
			m.told.metrics, m.entries = before.told.metrics, before.entries // the node is still in the sum
		}
		g.memories[k] = m
	}
	return m
}

func (g *registry) drop(k key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.memories, k)
	delete(g.waiting, k)
}

// listen lets every budget wake a drain: what it will wait for is not known before its pass is over.
func (g *registry) listen(k key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[k] = interest{any: true}
}

// await notes, after the pass, which budgets may wake a drain, unless that has been dropped.
func (g *registry) await(k key, budgets map[types.NamespacedName]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.waiting[k]; ok {
		g.waiting[k] = interest{budgets: budgets}
	}
}

// newest returns the Node as the cache has it, or as the last write left it where the cache has not come so far.
func (g *registry) newest(cache Cache, name string) *corev1.Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	node := cache.Node(name)
	newest := g.ahead(node, name)
	if newest == node {
		delete(g.written, name)
	}
	return newest
}

// ahead returns what the last write has left of a node, where that is newer than the node given.
func (g *registry) ahead(node *corev1.Node, name string) *corev1.Node {
	if w := g.written[name]; w != nil && behind(node, w) {
		return w
	}
	return node
}

// nodes returns every Node that the cache knows, each as newest does. It does not change what the cache has given.
func (g *registry) nodes(cache Cache) []*corev1.Node {
	all := cache.Nodes()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.written) == 0 {
		return all
	}
	all = slices.Clone(all)
	for i, node := range all {
		all[i] = g.ahead(node, node.Name)
	}
	return all
}

// wrote keeps a Node as the server has answered, and forgets those that the cache shows by now.
func (g *registry) wrote(cache Cache, node *corev1.Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.written[node.Name]; w == nil || !behind(node, w) { // the answers to two writes may come in either order
		g.written[node.Name] = node
	}
	for name, w := range g.written {
		if !behind(cache.Node(name), w) {
			delete(g.written, name)
		}
	}
}

// behind reports whether node is an older state of w.
func behind(node, w *corev1.Node) bool {
	if node == nil || node.UID != w.UID {
		return false
	}
	order, err := resourceversion.Compare(node.ResourceVersion, w.ResourceVersion)
	return err == nil && order < 0
}

// markOf is markOf that decodes a text once: a set looks at all its nodes whenever one of them changes. The mark is
// shared and must not be changed.
func (g *registry) markOf(node *corev1.Node) (mark, error) {
	text, ok := node.Annotations[MarkAnnotation]
	g.mu.Lock()
	defer g.mu.Unlock()
	if !ok {
		delete(g.marks, node.Name)
		return mark{}, nil
	}
	known, ok := g.marks[node.Name]
	if !ok || known.text != text {
		known.text = text
		known.mark, known.err = markOf(node)
		g.marks[node.Name] = known
	}
	return known.mark, known.err
}

// watch adds a function that is told which node to look at.
func (g *registry) watch(changed func(node string)) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.next
	g.next++
	g.watchers[id] = changed
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watchers, id)
	}
}

// changed passes a change on for every node that has an interest in it.
func (g *registry) changed(c Change) {
	g.mu.Lock()
	var nodes []string
	seen := map[string]bool{}
	for k, i := range g.waiting {
		budget := i.budgets[c.Budget] || i.any && c.Budget != (types.NamespacedName{})
		if (k.node == c.Node || budget) && !seen[k.node] {
			seen[k.node] = true
			nodes = append(nodes, k.node)
		}
	}
	watchers := make([]func(string), 0, len(g.watchers))
	for _, w := range g.watchers {
		watchers = append(watchers, w)
	}
	g.mu.Unlock()
	for _, n := range nodes {
		for _, w := range watchers {
			w(n)
		}
	}
}

// unsure reports whether a write for this maintenance may have been carried out without being known to be: one whose answer was lost, or that
// of an earlier process.
func (g *registry) unsure(k key, maintenance string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.memories[k]
	return m == nil || m.maintenance != maintenance || m.unsure.Load()
}

// doubtful reports whether this process has tried to cordon the node for this maintenance and does not know whether it carries the mark.
func (g *registry) doubtful(k key, maintenance string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.memories[k]
	return m != nil && m.maintenance == maintenance && m.doubt.Load()
}

// Forget lets go of all that this process remembers of a holder's drains, as if it had been started anew, and tells
// [Metrics] that it knows of these nodes no more. It is for a process that does the holder's work no longer, since
// another one leads: what was remembered grows old, and how the drains stand is for that one to tell. The nodes stay
// as they are, and a pass that comes later begins with what is on them. It waits for the holder's passes that are
// under way; if ctx ends before, its error is returned, and some of the drains may still be remembered.
func (d *Drainer) Forget(ctx context.Context, holder string) error {
	if d == nil || d.registry == nil {
		return option.NotMade("drain.Drainer.Forget", "drain.New")
	}
	for _, k := range d.registry.of(holder) {
		unlock, err := d.registry.lock(ctx, k)
		if err != nil {
			return fmt.Errorf("forgetting the drains of holder %q: %w", holder, err)
		}
		if f, counted := d.o.Metrics.Phase, d.registry.forget(k); f != nil && counted != "" {
			f(counted, "")
		}
		unlock()
	}
	return nil
}

// of are the keys of a holder that there is a memory of.
func (g *registry) of(holder string) (keys []key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.memories {
		if k.holder == holder {
			keys = append(keys, k)
		}
	}
	return keys
}

// findMemory returns what is remembered, nil for nothing. It may be looked at under the lock of its passes.
func (g *registry) findMemory(k key) *memory {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.memories[k]
}

// forget drops what is remembered, under the lock of its passes, and returns the phase that metrics were told.
func (g *registry) forget(k key) (counted Phase) {
	m := g.findMemory(k)
	g.drop(k)
	if m == nil {
		return ""
	}
	return m.told.metrics
}
