// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Fact is one of the seven things that a [Verifier] checks.
type Fact string

// The facts, in the order in which they are checked.
const (
	// Authenticated: the API server knows the token, and it has neither expired nor lost what it was bound to.
	Authenticated Fact = "Authenticated"
	// ForAudience: it was made for this audience.
	ForAudience Fact = "ForAudience"
	// FromServiceAccount: it is of the agents' service account, by namespace and name.
	FromServiceAccount Fact = "FromServiceAccount"
	// BoundToPod: it names one pod, by name and UID.
	BoundToPod Fact = "BoundToPod"
	// OnNode: it names one node, which is the wanted one; so does the pod itself.
	OnNode Fact = "OnNode"
	// PodLive: the pod is there with this UID, in the namespace of the service account, and is neither ending nor at its end.
	PodLive Fact = "PodLive"
	// NodeLive: the Node is there with the UID in the token.
	NodeLive Fact = "NodeLive"
)

// ErrRefused is in the chain of every [RefusedError].
var ErrRefused = errors.New("the token is refused")

// A RefusedError says that the bearer of a token is not the agent of the node, and which fact is missing.
type RefusedError struct {
	Fact Fact
	// Detail says what was found and what would be right. It never holds the token.
	Detail string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: not %s: %s", ErrRefused, e.Fact, e.Detail)
}

// Unwrap returns [ErrRefused].
func (e *RefusedError) Unwrap() error { return ErrRefused }

func refused(fact Fact, format string, args ...any) error {
	return &RefusedError{Fact: fact, Detail: fmt.Sprintf(format, args...)}
}

// claimed is what a reviewed token says of its bearer, if all of it is right.
func claimed(s authenticationv1.TokenReviewStatus, audience string, account types.NamespacedName, node string) (Caller, error) {
	user := serviceAccountUser(account)
	switch {
	case !s.Authenticated || s.Error != "":
		return Caller{}, refused(Authenticated, "the API server says %q", s.Error)
	case !slices.Contains(s.Audiences, audience):
		return Caller{}, refused(ForAudience, "it is for the audiences %q, want %q among them", s.Audiences, audience)
	case s.User.Username != user:
		return Caller{}, refused(FromServiceAccount, "it is of the user %q, want %q", s.User.Username, user)
	}
	claim := func(key string) []string { return s.User.Extra[key] }
	pods, podUIDs := claim(podNameClaim), claim(podUIDClaim)
	if one(pods) == "" || one(podUIDs) == "" {
		return Caller{}, refused(BoundToPod, "it names the pods %q with the UIDs %q, want one", pods, podUIDs)
	}
	nodes, nodeUIDs := claim(nodeNameClaim), claim(nodeUIDClaim)
	if one(nodes) != node || one(nodeUIDs) == "" {
		return Caller{}, refused(OnNode, "it names the nodes %q with the UIDs %q, want the one %q", nodes, nodeUIDs, node)
	}
	return Caller{
		Node: node, NodeUID: types.UID(nodeUIDs[0]),
		Pod: types.NamespacedName{Namespace: account.Namespace, Name: pods[0]}, PodUID: types.UID(podUIDs[0]),
	}, nil
}

func serviceAccountUser(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// one is the value of a claim that has exactly one, else empty.
func one(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// checkPod compares what the token says of its pod with the pod. One that is ending is refused whatever its grace period: when that ends is
// a time on another machine's clock.
func checkPod(pod *corev1.Pod, c Caller, account types.NamespacedName) error {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.Namespace != c.Pod.Namespace || pod.Name != c.Pod.Name:
		return refused(PodLive, "the pod is %q, want %q", pod.Namespace+"/"+pod.Name, c.Pod)
	case pod.UID != c.PodUID:
		return refused(PodLive, "the pod %q has the UID %q, want %q", c.Pod, pod.UID, c.PodUID)
	case pod.DeletionTimestamp != nil || ended:
		return refused(PodLive, "the pod %q is ending or at its end, in the phase %q", c.Pod, pod.Status.Phase)
	case pod.Spec.ServiceAccountName != account.Name:
		return refused(FromServiceAccount, "the pod %q has the service account %q, want %q", c.Pod, pod.Spec.ServiceAccountName, account.Name)
	case pod.Spec.NodeName != c.Node:
		return refused(OnNode, "the pod %q is on the node %q, want %q", c.Pod, pod.Spec.NodeName, c.Node)
	}
	return nil
}

func checkNode(node *corev1.Node, c Caller) error {
	if node.Name != c.Node || node.UID != c.NodeUID {
		return refused(NodeLive, "the node %q has the UID %q, want %q with %q", node.Name, node.UID, c.Node, c.NodeUID)
	}
	return nil
}
