// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/restclient"
)

// LeadOptions configure [Lead]. Namespace and Name are required.
type LeadOptions struct {
	// Namespace and Name are those of the Lease. All replicas use the same ones.
	Namespace, Name string
	// Component is what the Lease is labelled with. Empty means Name, which must be a label value then.
	Component string
	// PodUID is metadata.uid of this pod, from the downward API. Errors of other replicas show it. It may be empty.
	PodUID string
	// Liveness is how long the others wait for a leader that is silent. Zero means 15 s; the least is 5 s. The leader
	// writes it into the Lease as leaseDurationSeconds, rounded down to whole seconds.
	//
	// Replicas may have different values during a rolling update, and client-go's leader election may hold the Lease.
	// Each replica waits for its own Liveness or for the leader's leaseDurationSeconds, whichever is longer. It counts at
	// most 10 minutes of leaseDurationSeconds, so that a typo does not block the name for ever. If Liveness is over
	// 10 minutes, set the same value in all replicas. If a client-go leader has a longer duration, stop it first.
	Liveness time.Duration
	// Stop is how long Lead tries to delete the Lease after work has returned. Zero means 10 s.
	Stop time.Duration
	// HTTP is the client for all requests. Nil means one of the rest.Config, whose timeout and rate limit are ignored.
	HTTP *http.Client
	// Options set the clock and the metrics of the [Member].
	Options Options
}

const (
	defaultLeadLiveness = 15 * time.Second
	minLeadLiveness     = 5 * time.Second
)

// Lead runs leader election: it calls work while this process holds the Lease, and waits while another process holds
// it. The context of work ends when ctx ends or the Lease is lost. After a loss, Lead waits for work to return, logs
// its error and acquires the Lease again. Lead returns the error of work when work returns while the Lease is held,
// or after ctx has ended; nil if that error only says that ctx has ended. It repeats failed requests, also forbidden
// ones, and logs them at verbosity 2; [NewLeader] and [Member.Healthy] show why this process does not lead.
//
// A leader that cannot renew stops after 2/3 of Liveness. After a crash, the next leader starts when the Lease has
// not changed for Liveness, or for the old leader's leaseDurationSeconds where that is longer. At an orderly end
// Lead deletes the Lease, and the next leader starts as soon as it sees that. The process needs get, create, update
// and delete on leases in Namespace.
//
// Epoch.Number grows with each leader: a store that keeps it can refuse what an earlier leader sends late.
func Lead(ctx context.Context, config *rest.Config, o LeadOptions, work func(ctx context.Context, e Epoch) error) error {
	m, err := NewLeader(config, o)
	if err != nil {
		return err
	}
	return m.Run(ctx, work)
}

// Elect returns a function that runs [Lead] without the Epoch, for rollout/kube.ControllerOptions.Lead.
func Elect(config *rest.Config, o LeadOptions) func(ctx context.Context, work func(context.Context) error) error {
	return func(ctx context.Context, work func(context.Context) error) error {
		return Lead(ctx, config, o, func(ctx context.Context, _ Epoch) error { return work(ctx) })
	}
}

// NewLeader returns a [Member] whose Run is [Lead], for a readiness check by [Member.Healthy]. It makes no request.
func NewLeader(config *rest.Config, o LeadOptions) (*Member, error) {
	if err := o.validate(config); err != nil {
		return nil, err
	}
	leases, err := newRESTLeases(config, o.HTTP, o.Namespace)
	if err != nil {
		return nil, fmt.Errorf("identity.Lead: %w", err)
	}
	fingerprint := LocalFingerprint("/")
	fingerprint.PodUID = cmp.Or(o.PodUID, fingerprint.PodUID)
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("identity.Lead: %w", err)
	}
	liveness := cmp.Or(o.Liveness, defaultLeadLiveness)
	m, err := New(leases, Spec{
		Namespace: o.Namespace, Name: o.Name, Component: cmp.Or(o.Component, o.Name), Host: host, Fingerprint: fingerprint,
		OnDuplicate: WaitOnDuplicate, Timing: Timing{
			Renew: max(time.Second, liveness/8), Jitter: 0.04, Hold: liveness * 2 / 3, Liveness: liveness,
			Duration: liveness.Truncate(time.Second), Stop: cmp.Or(o.Stop, defaultLeadStop),
		},
	}, o.Options)
	if err != nil {
		return nil, err
	}
	m.waitsForDuration = true
	return m, nil
}

const defaultLeadStop = 10 * time.Second

func (o LeadOptions) validate(config *rest.Config) error {
	check := option.For("identity.Lead", nil)
	check.Require("config", config, "see rest.InClusterConfig")
	check.Require("LeadOptions.Namespace", o.Namespace, "that of the process")
	check.Require("LeadOptions.Name", o.Name, "the same in all replicas")
	if o.Liveness != 0 && o.Liveness < minLeadLiveness {
		check.Wrong("LeadOptions.Liveness is %v, want at least %v", o.Liveness, minLeadLiveness)
	}
	return check.Err()
}

// restLeases is a [LeaseClient] without the typed clients of client-go, which would bring the types of all API groups.
type restLeases struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
	namespace  string
}

func newRESTLeases(config *rest.Config, over *http.Client, namespace string) (*restLeases, error) {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	if err := coordinationv1.AddToScheme(known); err != nil {
		return nil, err
	}
	config, over, err := restclient.WithoutTimeouts(config, over)
	if err != nil {
		return nil, err
	}
	config.QPS, config.RateLimiter = -1, nil // a heartbeat never waits for other requests
	config.APIPath, config.GroupVersion = "/apis", &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, over)
	return &restLeases{client, runtime.NewParameterCodec(known), namespace}, err
}

// request is one on the Leases of the namespace. The Member decides when to repeat it.
func (l *restLeases) request(r *rest.Request) *rest.Request {
	return r.Namespace(l.namespace).Resource("leases").MaxRetries(0)
}

// Get implements [LeaseClient].
func (l *restLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return leaseOf(l.request(l.client.Get()).Name(name).VersionedParams(&o, l.parameters).Do(ctx))
}

// Create implements [LeaseClient].
func (l *restLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return leaseOf(l.request(l.client.Post()).VersionedParams(&o, l.parameters).Body(lease).Do(ctx))
}

// Update implements [LeaseClient].
func (l *restLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return leaseOf(l.request(l.client.Put()).Name(lease.Name).VersionedParams(&o, l.parameters).Body(lease).Do(ctx))
}

// Delete implements [LeaseClient].
func (l *restLeases) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return l.request(l.client.Delete()).Name(name).Body(&o).Do(ctx).Error()
}

func leaseOf(result rest.Result) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := result.Into(lease)
	return lease, err
}
