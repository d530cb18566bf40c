// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/option"
)

// defaultSyncTimeout bounds the first look at the cluster where [OpenOptions] have no other time.
const defaultSyncTimeout = time.Minute

// OpenOptions are those of [Open]. The zero value is the usual choice.
type OpenOptions struct {
	// Cache says what is watched. With Informers only its Node and Annotations are used.
	Cache CacheOptions
	// Informers, where one of them is set, are used instead of watches of this package's own: see [NewCacheFromInformers].
	Informers Informers
	// Client is for the requests that a drain sends.
	Client ClientOptions
	// HTTP, when set, is used for the requests of the Client and of the watches: that of a controller-runtime
	// manager, for example.
	HTTP *http.Client
	// SyncTimeout bounds the first look at the cluster. Zero means one minute.
	SyncTimeout time.Duration
	// NoWait has [Open] return before the cluster has been seen: for the Informers of a manager that starts later. Then
	// call WaitForSync of Drainer.Cache. Until it has returned nil, each pass and each dry run is a [drain.CacheError].
	NoWait bool
	// Drain has the other parts of the Drainer. Its Cache and Client, where nil, are those that Open makes. Responders
	// get the one of [NewEvictionRequester] under the name "EvictionRequest", unless they have another one of that name.
	Drain drain.Options
}

// A Drainer is a [drain.Drainer] with the parts that [Open] has made for it.
type Drainer struct {
	*drain.Drainer
	// Cache is the Cache that Open has made.
	Cache *Cache
	// View is what the Drainer sees, Client what it sends its requests by.
	View   drain.Cache
	Client drain.Client

	factory informers.SharedInformerFactory // nil over the informers of an embedder
	stop    context.CancelFunc
}

// Open watches the cluster, waits until all of it has been seen, and returns a Drainer for it. ctx bounds that wait
// alone: the watches go on until [Drainer.Close] is called, as what a drain gives back when its own context ends is
// given back through them. Where a right is missing, or the informers of an embedder cannot be used, Open does not
// wait: its error wraps an [InformerError]. With [OpenOptions].NoWait it never waits.
func Open(ctx context.Context, config *rest.Config, o OpenOptions) (*Drainer, error) {
	check := option.For("drain/kube.Open", nil)
	check.Require("config", config, "see k8s.io/client-go/tools/clientcmd or k8s.io/client-go/rest.InClusterConfig")
	if o.SyncTimeout < 0 {
		check.Wrong("OpenOptions.SyncTimeout must not be negative, got %s", o.SyncTimeout)
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	d := &Drainer{stop: func() {}}
	if err := d.open(ctx, config, o); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Drainer) open(ctx context.Context, config *rest.Config, o OpenOptions) error {
	client, err := NewClientForConfig(config, o.HTTP, o.Client)
	if err != nil {
		return err
	}
	if err := d.openCache(ctx, config, o); err != nil {
		return err
	}
	if !o.NoWait {
		if err := d.waitForCache(ctx, orDefault(o.SyncTimeout, defaultSyncTimeout)); err != nil {
			return fmt.Errorf("looking at the cluster at %s: %w", config.Host, err)
		}
	}
	parts := o.Drain
	if parts.Cache == nil {
		parts.Cache = d.Cache.View()
	}
	if parts.Client == nil {
		parts.Client = client
	}
	if parts.Responders, err = withRequester(parts.Responders, config, o); err != nil {
		return err
	}
	d.View, d.Client = parts.Cache, parts.Client
	d.Drainer, err = drain.New(parts)
	return err
}

// withRequester adds the responder of [NewEvictionRequester], unless the name is in use.
func withRequester(
	own map[string]drain.Responder, config *rest.Config, o OpenOptions,
) (map[string]drain.Responder, error) {
	if _, ok := own[requestResponder]; ok {
		return own, nil
	}
	requester, err := NewEvictionRequester(config, o.HTTP, Options{Timeout: o.Client.Timeout, Now: o.Drain.Now})
	if err != nil {
		return nil, err
	}
	all := map[string]drain.Responder{requestResponder: requester}
	maps.Copy(all, own)
	return all, nil
}

// openCache makes the Cache, and starts its informers where they are not those of an embedder.
func (d *Drainer) openCache(ctx context.Context, config *rest.Config, o OpenOptions) error {
	clientset, err := newClientset(config, o.HTTP)
	if err != nil {
		return fmt.Errorf("drain/kube.Open: %w", err)
	}
	if o.Informers != (Informers{}) {
		d.Cache, err = NewCacheFromInformers(clientset, o.Informers, CacheOptions{
			Node: o.Cache.Node, Annotations: o.Cache.Annotations,
		})
		return err
	}
	d.factory = NewFactory(clientset, o.Cache)
	if d.Cache, err = NewCache(d.factory, o.Cache); err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	d.factory.Start(watching.Done())
	return nil
}

// waitForCache waits for the first look, but not for a right that is missing.
func (d *Drainer) waitForCache(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("not seen whole within %s", most))
	defer cancel()
	ctx, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(syncEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := denied(d.Cache.checkInformers()); err != nil {
					deny(err)
					return
				}
			}
		}
	}()
	err := d.Cache.WaitForSync(ctx)
	deny(nil)
	<-done
	return err
}

// denied is the first error of an informer for which a right is missing.
func denied(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, e := range joined.Unwrap() {
		if apierrors.IsForbidden(e) || apierrors.IsUnauthorized(e) {
			return e
		}
	}
	return nil
}

// Close ends the watches and waits for them. The informers of an embedder go on. No pass may be under way.
func (d *Drainer) Close() {
	if d.stop == nil {
		return
	}
	if d.Cache != nil {
		d.Cache.Close()
	}
	d.stop()
	if d.factory != nil {
		d.factory.Shutdown()
	}
}

// DrainOptions are those of [DrainNode] and [ReleaseNode]. The zero value is the usual choice.
type DrainOptions struct {
	// Holder names who drains, the same over restarts and different from every other actor. Empty means "belay-drain".
	Holder string
	// Maintenance identifies this maintenance of the node: a call with the same one goes on with a drain that has
	// begun, and takes one that is done for done. Empty means one of its own for each call.
	Maintenance string
	// Policy says how pods are treated. The zero value is the safe one.
	Policy drain.Policy
	// Timeout, when set, ends the drain: the node then stays cordoned. Zero means as long as ctx.
	Timeout time.Duration
	// Report, when set, takes the status after each pass.
	Report func(drain.Status)
	// Open has the options of the connection. The node alone is watched.
	Open OpenOptions
}

// defaultHolder is the holder of a drain whose [DrainOptions] have no other.
const defaultHolder = "belay-drain"

// DrainNode cordons a node and empties it, as "kubectl drain" does, and returns when it is empty. Where it is not, the
// error is a [drain.NodeNotFoundError] or a [NotDrainedError] that names the pods: when ctx ends, it wraps ctx's error,
// and the node is given back as it was found; after a Timeout it stays cordoned. Of two calls of the same Holder the
// later one goes on, and the other one ends. [ReleaseNode] ends the maintenance.
func DrainNode(ctx context.Context, config *rest.Config, name string, o DrainOptions) (drain.Status, error) {
	return runNode(ctx, config, name, drain.Drain, o)
}

// ReleaseNode takes the holder's cordon off a node, as "kubectl uncordon" does: with the last holder, the node is as
// schedulable as it was before the first.
func ReleaseNode(ctx context.Context, config *rest.Config, name string, o DrainOptions) (drain.Status, error) {
	return runNode(ctx, config, name, drain.Release, o)
}

func runNode(
	ctx context.Context, config *rest.Config, name string, mode drain.Mode, o DrainOptions,
) (drain.Status, error) {
	needs := CacheOptionsFor(o.Policy)
	o.Open.Cache.Node, o.Open.Cache.DaemonSets = name, true
	o.Open.Cache.Volumes = o.Open.Cache.Volumes || needs.Volumes
	o.Open.Cache.Namespaces = o.Open.Cache.Namespaces || needs.Namespaces
	o.Open.Cache.Annotations = append(needs.Annotations, o.Open.Cache.Annotations...)
	now := time.Now()
	r := drain.Request{
		Holder: orDefault(o.Holder, defaultHolder), Maintenance: orDefault(o.Maintenance, now.UTC().Format(time.RFC3339Nano)),
		Mode: mode, Policy: o.Policy,
	}
	if o.Timeout > 0 {
		r.Deadline = now.Add(o.Timeout)
	}
	d, err := Open(ctx, config, o.Open)
	if err != nil {
		return drain.Status{Node: name, Mode: mode, Phase: drain.Pending}, err
	}
	defer d.Close()
	// The sum of the phases that Metrics are told is without this node, which nothing here looks at any more.
	defer func() { _ = d.Forget(context.WithoutCancel(ctx), r.Holder) }()
	set, err := d.Run(ctx, drain.Set{Request: r, Groups: [][]string{{name}}}, func(st drain.SetStatus) {
		if o.Report != nil && len(st.Nodes) == 1 {
			o.Report(st.Nodes[0])
		}
	})
	if len(set.Nodes) != 1 {
		return drain.Status{Node: name, Mode: mode, Phase: drain.Pending}, err
	}
	st := set.Nodes[0]
	switch {
	case err != nil:
		return st, &NotDrainedError{Status: st, Err: err}
	case st.Phase == drain.Drained, st.Phase == drain.Released:
		return st, nil
	case st.Reason == drain.NodeNotFound:
		return st, &drain.NodeNotFoundError{Node: name, Mode: mode}
	default:
		return st, &NotDrainedError{Status: st}
	}
}

// A NotDrainedError is a node that [DrainNode] has not emptied.
type NotDrainedError struct {
	// Status is that of the last pass.
	Status drain.Status
	// Err is what ended the drain: that of its context, for example. Nil is the status itself.
	Err error
}

// Unwrap returns what ended the drain.
func (e *NotDrainedError) Unwrap() error { return e.Err }

// Error names the node, why it is not empty, and the pods that are left.
func (e *NotDrainedError) Error() string {
	text := fmt.Sprintf("node %q is %s", e.Status.Node, e.Status.Phase)
	if e.Err != nil {
		text = e.Err.Error() + ": " + text
	}
	if e.Status.Reason != "" {
		text += fmt.Sprintf(" (%s)", e.Status.Reason)
	}
	if e.Status.Message != "" {
		text += ": " + e.Status.Message
	}
	for _, b := range e.Status.Blockers {
		text += fmt.Sprintf("; pod %s: %s", b.PodRef, orDefault(b.Message, string(b.Reason)))
	}
	return text
}
