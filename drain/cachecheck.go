// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNodeNotFound is wrapped by the errors about a Node that the API server does not have.
var ErrNodeNotFound = errors.New("the node does not exist")

// ErrCacheStopped is wrapped by the error of [Cache].Check where the cache will never show anything new, as its
// informers have been stopped.
var ErrCacheStopped = errors.New("the cache has stopped")

// errSelectsTooLittle is the usual cause of objects that a cache never shows.
var errSelectsTooLittle = errors.New("it is late, or its informers select too little: they must watch every pod and Node, " +
	"without selectors, and keep metadata.uid and spec.nodeName")

// A NodeNotFoundError is a Node of which something is wanted and that the API server does not have. It wraps
// [ErrNodeNotFound].
type NodeNotFoundError struct {
	Node string
	// UID is that of the Node that is meant, where there is one of that name with another UID.
	UID types.UID
	// Mode is what is wanted; empty for a plan.
	Mode Mode
}

// Error names the Node.
func (e *NodeNotFoundError) Error() string {
	if e.UID != "" {
		return fmt.Sprintf("there is no node %q with UID %q", e.Node, e.UID)
	}
	return fmt.Sprintf("there is no node %q", e.Node)
}

// missingNode returns the error for a request whose Node does not exist, or is another one now, else nil.
func missingNode(st Status) error {
	switch {
	case st.Phase == Failed && st.Reason == NodeNotFound:
		return &NodeNotFoundError{Node: st.Node, Mode: st.Mode}
	case st.Phase == Failed && st.Reason == NodeReplaced:
		return &NodeNotFoundError{Node: st.Node, UID: st.NodeUID, Mode: st.Mode}
	}
	return nil
}

// Unwrap returns [ErrNodeNotFound].
func (e *NodeNotFoundError) Unwrap() error { return ErrNodeNotFound }

// A CacheError is a [Cache] that does not show what the API server has. Nothing is decided on it.
type CacheError struct {
	// Err is what [Cache].Check has returned, or what the server has and the cache does not show.
	Err error
}

// Error says what is wrong with the cache.
func (e *CacheError) Error() string {
	if e.Err == nil {
		return "the cache (Options.Cache) cannot be used"
	}
	return "the cache (Options.Cache) cannot be used: " + e.Err.Error()
}

// Unwrap returns what is wrong with it.
func (e *CacheError) Unwrap() error { return e.Err }

// checkCache returns an error while the cache may not be read.
func (d *Drainer) checkCache() error {
	if err := d.o.Cache.Check(); err != nil {
		return &CacheError{Err: err}
	}
	return nil
}

// nodeMissing asks the server for a Node that the cache does not show. It always returns an error: a
// [NodeNotFoundError] only if the server has no such Node.
func (d *Drainer) nodeMissing(ctx context.Context, name string) error {
	if err := d.checkCache(); err != nil {
		return err
	}
	_, err := d.o.Client.GetNode(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return &NodeNotFoundError{Node: name}
	case err != nil:
		return fmt.Errorf("making sure that there is no node %q: %w", name, err)
	}
	return &CacheError{Err: fmt.Errorf("it does not show node %q, which the server has: %w", name, errSelectsTooLittle)}
}

// readNamespaces notes the labels of the namespaces where a rule looks at them.
func readNamespaces(d *Drainer, s *Snapshot, policy *Policy, names map[string]bool) error {
	i := slices.IndexFunc(policy.Rules, func(r Rule) bool { return r.NamespaceSelector != nil })
	if i < 0 {
		return nil
	}
	cache, ok := d.o.Cache.(NamespaceCache)
	if ok {
		_, ok = cache.FindNamespace("")
	}
	if !ok {
		return fmt.Errorf("Policy.Rules[%d].namespaceSelector needs a cache that knows namespaces (NamespaceCache; "+
			"drain/kube.CacheOptions.Namespaces), and %T does not: %w", i, d.o.Cache, ErrOption)
	}
	s.Namespaces = map[string]map[string]string{}
	for name := range names {
		if namespace, _ := cache.FindNamespace(name); namespace != nil {
			s.Namespaces[name] = namespace.Labels
		}
	}
	return nil
}

// An annotationCache is a [Cache] that does not keep every annotation of pods.
type annotationCache interface {
	KeepsAnnotation(key string) bool
}

// keepsAnnotations refuses a rule on an annotation that the cache drops: it would match no pod.
func keepsAnnotations(d *Drainer, policy *Policy) error {
	cache, ok := d.o.Cache.(annotationCache)
	for i := range policy.Rules {
		for j, a := range policy.Rules[i].Annotations {
			if ok && !cache.KeepsAnnotation(a.Key) {
				return fmt.Errorf("Policy.Rules[%d].annotations[%d].key is %q, which the cache does not keep: "+
					"name it in drain/kube.CacheOptions.Annotations: %w", i, j, a.Key, ErrOption)
			}
		}
	}
	return nil
}
