// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/process"
)

// A peer does what has to be done, and nothing else: it takes what the watch brings for granted, writes each file durably, and starts the child.
type peer struct {
	client dynamic.Interface
	node   string
	like   string // the node whose status is the model of what is reported
	dir    string
	heard  *heard
	watch  watch.Interface
	child  *process.Group
	last   string // ConfigMap that was assigned
}

func (w *world) peer(ctx context.Context, node string) (*peer, error) {
	if err := w.node(ctx, node); err != nil {
		return nil, err
	}
	p := &peer{client: w.all, node: node, like: "ours", dir: filepath.Join(w.dir, node), heard: &heard{make(chan said, 100)}}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if p.watch, err = w.all.Resource(v1alpha1.NodeConfigsResource).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + node}); err != nil {
		return nil, err
	}
	if err := p.start("local"); err != nil {
		return nil, err
	}
	_, err = p.heard.next(ctx, "local")
	return p, err
}

func (p *peer) start(word string) (err error) {
	p.child, err = process.Start(child(word, p.heard))
	return err
}

// end stops the child.
func (p *peer) end() error {
	p.child.Signal(syscall.SIGTERM)
	return p.gone()
}

// gone waits for the end of the child, however it ends.
func (p *peer) gone() error {
	var exit *exec.ExitError
	<-p.child.Done()
	if err := p.child.Err(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// adopt waits for an assignment by watch and carries it out, with so many durable writes before the restart and after it.
func (p *peer) adopt(ctx context.Context, before, after int) error {
	name, err := p.wanted(ctx)
	if err != nil {
		return err
	}
	cm, err := p.client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, _, err := unstructured.NestedString(cm.Object, "data", key)
	if err != nil {
		return err
	}
	raw, err := cm.MarshalJSON()
	if err != nil {
		return err
	}
	if err := errors.Join(p.write(before, raw), p.end()); err != nil {
		return err
	}
	var word string
	if _, err := fmt.Sscanf(text, "word: %s", &word); err != nil {
		return err
	}
	return p.again(ctx, after, word)
}

// again writes, reports, and starts the child.
func (p *peer) again(ctx context.Context, writes int, word string) error {
	if err := p.write(writes, []byte(word)); err != nil {
		return err
	}
	if err := p.report(ctx); err != nil {
		return err
	}
	return p.start(word)
}

// report applies a status as large as ours, in which something is new.
func (p *peer) report(ctx context.Context) error {
	nodeConfigs := p.client.Resource(v1alpha1.NodeConfigsResource)
	model, err := nodeConfigs.Get(ctx, p.like, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, _, err := unstructured.NestedMap(model.Object, "status")
	if err != nil {
		return err
	}
	status["error"] = fmt.Sprint("reported at ", time.Now())
	_, err = nodeConfigs.ApplyStatus(ctx, p.node, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.NodeConfigKind, "metadata": map[string]any{"name": p.node}, "status": status,
	}}, metav1.ApplyOptions{FieldManager: "peer", Force: true})
	return err
}

// wanted waits for the next change of the spec.
func (p *peer) wanted(ctx context.Context) (string, error) {
	for {
		select {
		case e, open := <-p.watch.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			if !open || !ok {
				return "", fmt.Errorf("the watch has ended: %v", e.Object)
			}
			name, _, err := unstructured.NestedString(u.Object, "spec", "source", "configMapRef", "name")
			if err != nil {
				return "", err
			}
			if name != p.last {
				p.last = name
				return name, nil
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// write replaces so many files, each durably.
func (p *peer) write(n int, payload []byte) error {
	for i := range n {
		if err := durable(p.dir, fmt.Sprintf("record-%d", i), payload); err != nil {
			return err
		}
	}
	return nil
}

// durable is the least that a write takes: a new file, its fsync, the rename, and the fsync of the directory.
func durable(dir, name string, payload []byte) error {
	f, err := os.CreateTemp(dir, "tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(payload)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
