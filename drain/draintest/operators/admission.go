// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

const (
	admissionDocs = "https://kubernetes.io/docs/reference/access-authn-authz/"
	webhookSource = admissionDocs + "extensible-admission-controllers/#failure-policy"
	policySource  = admissionDocs + "validating-admission-policy/"
)

var shopSet = labels.Set{"app": "shop"}

// prepareShop creates a workload of two pods on the node under a budget that allows one to leave.
func prepareShop(ctx context.Context, c *cluster) error {
	owner := newOwner("apps/v1", "StatefulSet", "shop")
	for i := range 2 {
		if err := c.addPod(ctx, newPod(fmt.Sprintf("shop-%d", i), c.node, owner, shopSet)); err != nil {
			return err
		}
	}
	return c.addBudget(ctx, "shop", shopSet, countOf(1), nil)
}

// replaceShop plays the controller of the workload.
func replaceShop(ctx context.Context, c *cluster, v view) error {
	for i := range 2 {
		name := fmt.Sprintf("shop-%d", i)
		if _, ok := v.podNamed(name); ok {
			continue
		}
		return c.addPod(ctx, newPod(name, c.nodes[1], newOwner("apps/v1", "StatefulSet", "shop"), shopSet))
	}
	return nil
}

func verifyShop(v view) string {
	if v.countReady(shopSet) < 1 {
		return "the budget was broken: no pod of the shop was ready"
	}
	return ""
}

// unreliable is a webhook with failurePolicy Fail that fails at first and then allows every eviction. The API server
// answers the evictions that it fails with 500 and "failed calling webhook".
type unreliable struct {
	slow  bool // it answers after its time-out instead of with 500
	calls atomic.Int64
}

// failures is how many calls fail.
const failures = 2

func (u *unreliable) createObjects(ctx context.Context, c *cluster) error {
	if err := prepareShop(ctx, c); err != nil {
		return err
	}
	return c.serveWebhook(ctx, &webhook{
		name: "evictions.example.com", policy: admissionregistrationv1.Fail, timeout: 1,
		answer: func(ctx context.Context, _ string) (*metav1.Status, int) {
			if u.calls.Add(1) > failures {
				return nil, 0
			}
			if u.slow {
				<-ctx.Done() // the API server has closed the connection
			}
			return nil, http.StatusInternalServerError
		},
	}, "shop-0")
}

func (u *unreliable) reconcile(ctx context.Context, c *cluster, v view) error {
	return replaceShop(ctx, c, v)
}
func (u *unreliable) checkInvariant(v view) string { return verifyShop(v) }
func (u *unreliable) verifyEnd(view) string        { return "" }

// frozen is a ValidatingAdmissionPolicy that refuses all evictions of the namespace, with a message, for
// some seconds after the node was cordoned.
type frozen struct {
	since  time.Time // of the cordon
	thawed bool
}

const freeze = 4 * time.Second

func (f *frozen) createObjects(ctx context.Context, c *cluster) error {
	if err := prepareShop(ctx, c); err != nil {
		return err
	}
	api := c.client.AdmissionregistrationV1()
	rules := []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: evictionRules()[0]}}
	_, err := api.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: c.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: c.namespaceSelector(), ResourceRules: rules,
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "the cluster is frozen"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating an admission policy: %w", err)
	}
	c.closes = append(c.closes, func(ctx context.Context) error {
		return api.ValidatingAdmissionPolicies().Delete(ctx, c.ns, metav1.DeleteOptions{})
	})
	bindings := api.ValidatingAdmissionPolicyBindings()
	_, err = bindings.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        c.ns,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding an admission policy: %w", err)
	}
	c.closes = append(c.closes, func(ctx context.Context) error {
		if f.thawed {
			return nil
		}
		return bindings.Delete(ctx, c.ns, metav1.DeleteOptions{})
	})
	return c.awaitAdmission(ctx, "shop-0", func(err error) bool { return err != nil })
}

func (f *frozen) reconcile(ctx context.Context, c *cluster, v view) error {
	if v.cordoned && f.since.IsZero() {
		f.since = time.Now()
	}
	if !f.thawed && !f.since.IsZero() && time.Since(f.since) > freeze {
		bindings := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		if err := bindings.Delete(ctx, c.ns, metav1.DeleteOptions{}); err != nil {
			return err
		}
		f.thawed = true
	}
	return replaceShop(ctx, c, v)
}

func (f *frozen) checkInvariant(v view) string {
	for _, p := range v.pods {
		if p.DeletionTimestamp != nil && !f.thawed {
			return "a pod was deleted while the cluster was frozen"
		}
	}
	return verifyShop(v)
}

func (f *frozen) verifyEnd(view) string { return "" }
