// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of the Leases of members.
const (
	// ComponentLabel holds [Spec].Component. No leader election writes it, so it selects the Leases of members alone.
	ComponentLabel = "identity.belay.dev/component"
	// HostLabel holds [Spec].Host where that is a legal label value, and is left out where it is not.
	HostLabel = corev1.LabelHostname
	// HostAnnotation holds [Spec].Host, whatever its length and characters.
	HostAnnotation = "identity.belay.dev/host"
	// FingerprintAnnotation holds the [Fingerprint] of the holder, as JSON.
	FingerprintAnnotation = "identity.belay.dev/fingerprint"
	// EpochAnnotation holds [Epoch].Number of the holder, in decimal. It may be missing for a moment after the Lease was created.
	EpochAnnotation = "identity.belay.dev/epoch"
	// lockFileAnnotation holds the device and the inode of [Spec].LockFile, as "device:inode", if the holder has locked one: only the lock of
	// that very file proves that it is gone. Its path does not: the file may have been replaced, or be another one in another container.
	lockFileAnnotation = "identity.belay.dev/lock-file"
)

// A LeaseClient reads and writes the Leases of one namespace. The LeaseInterface of client-go satisfies it. Every call gets a context
// with a deadline, and must return when it ends. The client should have no rate limit of its own, so that a heartbeat never waits for other requests, and
// should not repeat requests.
type LeaseClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// A NodeClient reads Nodes. The NodeInterface of client-go satisfies it.
type NodeClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Node, error)
}
