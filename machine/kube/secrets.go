// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"io/fs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

var _ controller.Secrets = Secrets{}

// Secrets are those of the cluster of the machines. They are read when they are needed, and not kept.
type Secrets struct{ Client kubernetes.Interface }

// Secret implements [controller.Secrets].
func (s Secrets) Secret(ctx context.Context, key machine.Key) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	secret, err := s.Client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("secret %q: %w", key, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("secret %q: %w", key, err)
	}
	return secret.Data, nil
}
