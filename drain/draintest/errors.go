// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// podResource is how the server names the resource in its answers, podKind how it does in its answers about preconditions.
func podResource() schema.GroupResource { return schema.GroupResource{Resource: "pods"} }
func podKind() schema.GroupResource     { return schema.GroupResource{Resource: "Pod"} }

func nodeResource() schema.GroupResource { return schema.GroupResource{Resource: "nodes"} }
func budgetResource() schema.GroupResource {
	return schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}
}

var (
	errNegative = errors.New("pdb disruptions allowed is negative")
	errTooMany  = errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
)

// budgetSingular is how the eviction names the resource where it forbids.
func budgetSingular() schema.GroupResource {
	return schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudget"}
}

const whyRefused = "Cannot evict pod as it would violate the pod's disruption budget."

// exhausted is the answer of a budget that allows none: no Retry-After.
func exhausted(why string) error { return refused(0, why) }

// stale is the answer of a budget whose status is older than its spec.
func stale(budget string) error {
	return refused(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget))
}

func refused(retryAfter int, why string) error {
	err := apierrors.NewTooManyRequests(whyRefused, retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: why})
	return err
}

func twoBudgets() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	}}
}

func otherUID(name string, want, have types.UID) error {
	return apierrors.NewConflict(podKind(), name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
		"The object might have been deleted and then recreated", want, have))
}

func optimisticLock(resource schema.GroupResource, name string) error {
	return apierrors.NewConflict(resource, name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func namespaceTerminating(pod, namespace string) error {
	err := apierrors.NewForbidden(podResource(), pod,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
	})
	return err
}
