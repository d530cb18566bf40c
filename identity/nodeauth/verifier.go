// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A TokenReviewer asks the API server whose a token is. The TokenReviewInterface of client-go satisfies it.
type TokenReviewer interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// A PodGetter reads the pods of one namespace. The PodInterface of client-go satisfies it.
type PodGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Pod, error)
}

// A NodeGetter reads Nodes. The NodeInterface of client-go satisfies it.
type NodeGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Node, error)
}

// A Verifier says whether the bearer of a token is the agent of a node, for a web API that agents call. It keeps nothing between calls,
// so that every replica of a server gives the same answer. Its fields are set once, before the first call.
//
// It needs create on tokenreviews.authentication.k8s.io and get on pods in the namespace of ServiceAccount and on nodes. The reads should go
// to the API server and not to a cache, which may still have a pod that is gone.
type Verifier struct {
	Tokens TokenReviewer
	Pods   PodGetter // of the namespace of ServiceAccount
	Nodes  NodeGetter
	// Audience is what the tokens were made for: a name of the web API's own, so that no token for it is good for anything else.
	Audience string
	// ServiceAccount is that of the agents.
	ServiceAccount types.NamespacedName
	// Timeout bounds each of the three requests. 0 means 5 s.
	Timeout time.Duration
}

// A Caller is an agent whose token has passed.
type Caller struct {
	Node    string
	NodeUID types.UID
	Pod     types.NamespacedName
	PodUID  types.UID
}

// Verify returns who bears the token if that is the agent of the node, and a [RefusedError] if it is not. Any other error says that the
// question could not be answered: the caller must be turned away too, with 503 and not with 403. No error holds the token.
func (v *Verifier) Verify(ctx context.Context, token, node string) (Caller, error) {
	if v.Audience == "" || v.ServiceAccount.Namespace == "" || v.ServiceAccount.Name == "" || node == "" {
		return Caller{}, fmt.Errorf("verifying a token for the node %q: the audience %q and the service account %q must be set, and a node named",
			node, v.Audience, v.ServiceAccount)
	}
	caller, err := v.verify(ctx, token, node)
	if err != nil {
		return Caller{}, fmt.Errorf("verifying a token for the node %q: %w", node, without(token, err))
	}
	return caller, nil
}

func (v *Verifier) verify(ctx context.Context, token, node string) (Caller, error) {
	if token == "" {
		return Caller{}, refused(Authenticated, "there is no token")
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{v.Audience}}}
	review, err := ask(ctx, v.Timeout, func(ctx context.Context) (*authenticationv1.TokenReview, error) {
		return v.Tokens.Create(ctx, review, metav1.CreateOptions{})
	})
	if err != nil {
		return Caller{}, fmt.Errorf("reviewing it: %w", err)
	}
	caller, err := claimed(review.Status, v.Audience, v.ServiceAccount, node)
	if err != nil {
		return Caller{}, err
	}
	pod, err := ask(ctx, v.Timeout, func(ctx context.Context) (*corev1.Pod, error) {
		return v.Pods.Get(ctx, caller.Pod.Name, metav1.GetOptions{})
	})
	if err != nil {
		return Caller{}, gone(PodLive, "pod", caller.Pod.String(), err)
	}
	if err := checkPod(pod, caller, v.ServiceAccount); err != nil {
		return Caller{}, err
	}
	found, err := ask(ctx, v.Timeout, func(ctx context.Context) (*corev1.Node, error) {
		return v.Nodes.Get(ctx, caller.Node, metav1.GetOptions{})
	})
	if err != nil {
		return Caller{}, gone(NodeLive, "node", caller.Node, err)
	}
	return caller, checkNode(found, caller)
}

// defaultTimeout bounds a request where nothing else is said.
const defaultTimeout = 5 * time.Second

// ask makes one request with a deadline.
func ask[T any](ctx context.Context, timeout time.Duration, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout, defaultTimeout))
	defer cancel()
	return request(ctx)
}

// gone makes a refusal of the answer that an object isn't there. Every other error remains one.
func gone(fact Fact, kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return refused(fact, "there is no %s %q", kind, name)
	}
	return fmt.Errorf("reading the %s %q: %w", kind, name, err)
}

// without takes the token out of an error that a server has put it into.
func without(token string, err error) error {
	if token == "" || !strings.Contains(err.Error(), token) {
		return err
	}
	hidden := strings.ReplaceAll(err.Error(), token, "…")
	var refusal *RefusedError
	if errors.As(err, &refusal) {
		return &RefusedError{Fact: refusal.Fact, Detail: strings.ReplaceAll(refusal.Detail, token, "…")}
	}
	return errors.New(hidden)
}
