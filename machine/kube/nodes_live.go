// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// Live implements [controller.Nodes]. The API server finds no Node by its ProviderID, so that all are listed: those who ask at once share a list that was begun after the
// last of them has asked.
func (s *nodeStore) Live(ctx context.Context, token string) ([]machine.Node, error) {
	nodes, err := s.lists.share(ctx, s.list)
	return slices.Clone(nodes[token]), err
}

// list asks for all Nodes, by token.
func (s *nodeStore) list(ctx context.Context) (map[string][]machine.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	all, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	nodes := map[string][]machine.Node{}
	for i := range all.Items {
		if n := &all.Items[i]; n.Spec.ProviderID != "" {
			token := provider.TokenOf(n.Spec.ProviderID)
			nodes[token] = append(nodes[token], nodeOf(n))
		}
	}
	return nodes, nil
}

// lists are those under way: one at a time.
type lists struct {
	mu sync.Mutex
	// running was begun; whoever asks now has to wait for the next one, which begins when that has ended.
	running, next *list
}

type list struct {
	ended chan struct{}
	nodes map[string][]machine.Node
	err   error
}

// share returns what a list has that begins after this call. The first who waits for it makes it for all of them: it ends in its own time, whatever becomes of him.
func (l *lists) share(ctx context.Context, ask func(context.Context) (map[string][]machine.Node, error)) (map[string][]machine.Node, error) {
	l.mu.Lock()
	mine, first, before := l.next, l.next == nil, l.running
	if first {
		mine = &list{ended: make(chan struct{})}
		l.next = mine
	}
	l.mu.Unlock()
	if first {
		l.begin(mine, before)
		mine.nodes, mine.err = ask(context.WithoutCancel(ctx))
		l.end(mine)
		return mine.nodes, mine.err
	}
	select {
	case <-mine.ended:
		return mine.nodes, mine.err
	case <-ctx.Done():
		return nil, fmt.Errorf("list Nodes: %w", ctx.Err())
	}
}

// begin waits for the list before, which is bounded as each is. From then on others wait for the next one.
func (l *lists) begin(mine, before *list) {
	if before != nil {
		<-before.ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running, l.next = mine, nil
}

func (l *lists) end(mine *list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = nil
	close(mine.ended)
}
