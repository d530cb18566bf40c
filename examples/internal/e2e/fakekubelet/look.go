// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/examples/internal/e2e/seen"
)

// lookTimeout bounds the look at the Node.
const lookTimeout = 15 * time.Second

// A look at the Node at the start.
type look struct{ kubeconfig, node, seen string }

// note adds a line to the file about the Node as it is now.
func (l look) note(config []byte) (err error) {
	if l.seen == "" {
		return nil
	}
	line := seen.Line{Config: string(config)}
	if line.Status, line.Message, line.Reason, err = l.condition(); err != nil {
		return fmt.Errorf("looking at node %q: %w", l.node, err)
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.seen, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}

// condition reads ConfigOK; all is empty where there is none.
func (l look) condition() (status, message, reason string, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		return "", "", "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", "", "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	node, err := client.CoreV1().Nodes().Get(ctx, l.node, metav1.GetOptions{})
	if err != nil {
		return "", "", "", err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "ConfigOK" {
			return string(c.Status), c.Message, c.Reason, nil
		}
	}
	return "", "", "", nil
}
