// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kwokAnnotation marks the nodes that kwok plays.
const kwokAnnotation = "kwok.x-k8s.io/node"

// Namespace makes a namespace of its own for a test, in which pods can be created, and returns its name. It is
// not deleted: without a controller manager nothing would ever finish that, and it goes with the control plane.
func (e *Env) Namespace(tb TB) string {
	tb.Helper()
	name, err := e.newNamespace(tb.Context(), tb.Name())
	if err != nil {
		tb.Fatal(err)
	}
	return name
}

func (e *Env) newNamespace(ctx context.Context, label string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(label)}}
	namespace, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making a namespace: %w", err)
	}
	return namespace.Name, e.admitPods(ctx, client, namespace.Name)
}

// namespacePrefix turns a test's name into a prefix that the API server accepts for a generated name.
func namespacePrefix(test string) string {
	const longest = 40
	prefix := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(test))
	prefix = strings.Trim(prefix[:min(len(prefix), longest)], "-")
	if prefix == "" {
		prefix = "test"
	}
	return prefix + "-"
}

// Port gives a test a TCP port of 127.0.0.1 for a server of its own. Until the test ends, the server may come and go on it:
// neither another user of this package nor a connection of the kernel's choice takes it.
func Port(tb TB) int {
	tb.Helper()
	var claim ports
	port, err := claim.take()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := claim.release(); err != nil {
			tb.Error(err)
		}
	})
	return port
}

// KwokNode makes [Env.CreateNode] create a node that kwok plays: it becomes Ready, and pods bound to it run.
func KwokNode(node *corev1.Node) {
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, kwokAnnotation, "fake")
}

// CreateNode creates a Node after the given changes to it. Nothing reports its status but what the test starts.
func (e *Env) CreateNode(ctx context.Context, name string, changes ...func(*corev1.Node)) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelHostname: name},
	}}
	for _, change := range changes {
		change(node)
	}
	if node, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating node %q: %w", name, err)
	}
	return node, nil
}
