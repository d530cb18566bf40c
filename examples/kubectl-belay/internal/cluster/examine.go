// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/doctor"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
)

// atOnce is how many questions about rights are asked at a time.
const atOnce = 8

// crdResource serves the definitions.
var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Target says where the controllers are.
type Target struct {
	// Namespace holds their Leases, whose names begin with Prefix and go on with the domain. Account is their user name.
	Namespace, Prefix, Account string
	// Patience is how long a Lease may take to be renewed; its own duration if that is longer.
	Patience time.Duration
}

// Examine looks at all that the doctor wants to know.
func (c *Cluster) Examine(ctx context.Context, t Target) (*doctor.Seen, error) {
	wanted, err := doctor.Definitions()
	if err != nil {
		return nil, err
	}
	s := &doctor.Seen{Account: t.Account, Rights: doctor.Needed(t.Namespace)}
	for _, w := range wanted {
		d := doctor.CRD{Want: w}
		d.Is, d.Err = c.get(ctx, crdResource, w.GetName())
		s.CRDs = append(s.CRDs, d)
	}
	seen, missing := c.see(ctx, settings.Controller{})
	s.Seen, s.Missing = *seen, missing
	c.ask(ctx, s.Rights, t.Account)
	var watching sync.WaitGroup
	domains := doctor.Domains(s.Rollouts)
	s.Leases = make([]doctor.Lease, len(domains))
	for i, d := range domains {
		watching.Go(func() { s.Leases[i] = c.lease(ctx, d, t) })
	}
	watching.Wait()
	return s, ctx.Err()
}

// ask asks the API server who may do what.
func (c *Cluster) ask(ctx context.Context, rights []doctor.Right, account string) {
	turn := make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for i := range rights {
		turn <- struct{}{}
		asking.Go(func() {
			defer func() { <-turn }()
			r := &rights[i]
			r.Allowed, r.Err = c.may(ctx, r, account)
		})
	}
	asking.Wait()
}

func (c *Cluster) may(ctx context.Context, r *doctor.Right, account string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	what := &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Sub, Namespace: r.InNamespace}
	if !r.Controller {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
		answer, err := c.core.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}
	spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: what, User: account, Groups: groups(account)}
	answer, err := c.core.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// groups are those that the API server puts an account in.
func groups(account string) []string {
	all := []string{"system:authenticated"}
	if name, ok := strings.CutPrefix(account, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(name, ":")
		all = append(all, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return all
}

// lease watches a Lease until it is renewed: clocks of two machines are not compared.
func (c *Cluster) lease(ctx context.Context, domain string, t Target) doctor.Lease {
	l := doctor.Lease{Domain: domain, Namespace: t.Namespace, Name: t.Prefix + domain}
	begin := time.Now()
	first, err := c.leaseNow(ctx, t.Namespace, l.Name)
	if err != nil {
		l.Err = err
		return l
	}
	if l.Holder = holder(first); l.Holder == "" {
		return l
	}
	patience := t.Patience
	if s := first.Spec.LeaseDurationSeconds; s != nil {
		patience = max(patience, time.Duration(*s)*time.Second)
	}
	look := time.NewTicker(5 * lookEvery)
	defer look.Stop()
	for time.Since(begin) < patience {
		select {
		case <-ctx.Done():
			l.Err = ctx.Err()
			return l
		case <-look.C:
		}
		now, err := c.leaseNow(ctx, t.Namespace, l.Name)
		if err != nil {
			l.Err = err
			return l
		}
		if now.ResourceVersion != first.ResourceVersion {
			l.Holder, l.Renewed = holder(now), true
			break
		}
	}
	l.Watched = time.Since(begin)
	return l
}

// leaseNow reads a Lease.
func (c *Cluster) leaseNow(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	return c.core.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}
