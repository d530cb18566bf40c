// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

func resource() schema.GroupResource { return coordinationv1.Resource("leases") }

func kind() schema.GroupKind { return coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind() }

// A Client is a client of one namespace, as one process has it. It satisfies identity.LeaseClient and identity.LeaseWatcher.
type Client struct {
	server    *Server
	namespace string
	name      string
	clock     *Clock
}

// Client returns a client of a namespace. name stands in [Request].Client. clock, if not nil, is that of the client's machine: while it is
// suspended, requests are carried out by the server and the client sees neither their answers nor what it watches.
func (s *Server) Client(namespace, name string, clock *Clock) *Client {
	return &Client{server: s, namespace: namespace, name: name, clock: clock}
}

// Get reads a Lease.
func (c *Client) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return c.do(ctx, Request{Operation: Get, Name: name}, func() (*coordinationv1.Lease, error) {
		found, ok := c.server.leases[c.key(name)]
		if !ok {
			return nil, apierrors.NewNotFound(resource(), name)
		}
		return found, nil
	})
}

// Create makes a Lease.
func (c *Client) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return c.do(ctx, Request{Operation: Create, Name: lease.Name, Lease: lease.DeepCopy()}, func() (*coordinationv1.Lease, error) {
		if lease.ResourceVersion != "" {
			return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
		}
		if _, ok := c.server.leases[c.key(lease.Name)]; ok {
			return nil, apierrors.NewAlreadyExists(resource(), lease.Name)
		}
		return c.create(lease)
	})
}

func (c *Client) create(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	made := lease.DeepCopy()
	made.Namespace, made.UID, made.CreationTimestamp = c.namespace, c.server.uid(), metav1.Now().Rfc3339Copy()
	made.ManagedFields = nil
	if err := validate(made); err != nil {
		return nil, err
	}
	c.server.commit(watch.Added, made)
	return made, nil
}

// Update replaces a Lease. As on the API server, a Lease that is not there is created, unless a UID is given: that is a conflict then.
func (c *Client) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return c.do(ctx, Request{Operation: Update, Name: lease.Name, Lease: lease.DeepCopy()}, func() (*coordinationv1.Lease, error) {
		found, ok := c.server.leases[c.key(lease.Name)]
		switch {
		case !ok && lease.UID == "" && lease.ResourceVersion == "":
			return c.create(lease)
		case !ok && lease.UID == "":
			return nil, apierrors.NewNotFound(resource(), lease.Name)
		case !ok:
			return nil, uidConflict(lease.Name, lease.UID, "")
		case lease.UID != "" && lease.UID != found.UID:
			return nil, uidConflict(lease.Name, lease.UID, found.UID)
		case lease.ResourceVersion == "":
			return nil, apierrors.NewInvalid(kind(), lease.Name, field.ErrorList{field.Invalid(
				field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		case lease.ResourceVersion != found.ResourceVersion:
			return nil, apierrors.NewConflict(resource(), lease.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
		}
		return c.replace(found, lease)
	})
}

func (c *Client) replace(found, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	next := lease.DeepCopy()
	next.Namespace, next.UID, next.CreationTimestamp = found.Namespace, found.UID, found.CreationTimestamp
	next.ManagedFields = nil
	if found.Spec.RenewTime.Equal(next.Spec.RenewTime) && apiequality.Semantic.DeepEqual(found, next) {
		return found, nil // the API server writes nothing either
	}
	if !renewal(found, next) {
		if err := validate(next); err != nil {
			return nil, err
		}
	}
	c.server.commit(watch.Modified, next)
	return next, nil
}

// renewal says that nothing is different between two Leases but the time, which needs no validation.
func renewal(found, next *coordinationv1.Lease) bool {
	a, b := found.Spec, next.Spec
	return maps.Equal(found.Labels, next.Labels) && maps.Equal(found.Annotations, next.Annotations) &&
		len(next.OwnerReferences) == 0 && len(next.Finalizers) == 0 &&
		ptr.Equal(a.LeaseDurationSeconds, b.LeaseDurationSeconds) && ptr.Equal(a.LeaseTransitions, b.LeaseTransitions)
}

// Delete deletes a Lease, if the preconditions hold.
func (c *Client) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := c.do(ctx, Request{Operation: Delete, Name: name, Preconditions: opts.Preconditions}, func() (*coordinationv1.Lease, error) {
		found, ok := c.server.leases[c.key(name)]
		if !ok {
			return nil, apierrors.NewNotFound(resource(), name)
		}
		if p := opts.Preconditions; p != nil {
			if p.UID != nil && *p.UID != found.UID {
				return nil, uidConflict(name, *p.UID, found.UID)
			}
			if p.ResourceVersion != nil && *p.ResourceVersion != found.ResourceVersion {
				return nil, versionConflict(name, *p.ResourceVersion, found.ResourceVersion)
			}
		}
		gone := found.DeepCopy()
		c.server.commit(watch.Deleted, gone)
		return gone, nil
	})
	return err
}

func (c *Client) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: name}
}

func uidConflict(name string, wanted, found types.UID) error {
	return apierrors.NewConflict(resource(), name, fmt.Errorf( //nolint:staticcheck // the server's words
		"Precondition failed: UID in precondition: %v, UID in object meta: %v", wanted, found))
}

func versionConflict(name, wanted, found string) error {
	return apierrors.NewConflict(resource(), name, fmt.Errorf( //nolint:staticcheck // the server's words
		"Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", wanted, found))
}

// validate refuses what the API server refuses of the fields that members write.
func validate(l *coordinationv1.Lease) error {
	errs := validation.ValidateObjectMeta(&l.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(kind(), l.Name, errs)
	}
	return nil
}
