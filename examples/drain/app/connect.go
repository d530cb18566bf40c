// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/internal/drain/settings"
)

const (
	// syncTime bounds the wait for the first look at the cluster.
	syncTime = 30 * time.Second
	// lookEvery is the pause between two looks whether that has come to its end.
	lookEvery = 50 * time.Millisecond
	// sayAfter is when it is said that this takes its time.
	sayAfter = 2 * time.Second
)

// A cluster is an API server, seen through a cache, and a Drainer on it.
type cluster struct {
	cache     drain.Cache
	drainer   *drain.Drainer
	client    *strictClient
	reach     *reach
	clientset kubernetes.Interface
	dryClient kube.Client
	deletes   bool           // pods are deleted, and no budget is asked
	overdue   *overdueFilter // nil where every pod is waited for
	close     func()
}

// A strictClient notes when a Node may not be written. A drain would wait for the right; a person is to be told at once.
type strictClient struct {
	drain.Client
	denied chan error // holds the first one
	judge  func(ctx context.Context, pod drain.PodRef) error
}

// DryRunEvict has the API server judge the removal of a pod, for [drain.Drainer.ProvePlan].
func (c *strictClient) DryRunEvict(ctx context.Context, pod drain.PodRef) error {
	return c.judge(ctx, pod)
}

func (c *strictClient) PatchNode(ctx context.Context, name string, patch []byte, status bool) (*corev1.Node, error) {
	node, err := c.Client.PatchNode(ctx, name, patch, status)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		select {
		case c.denied <- err:
		default:
		}
	}
	return node, err
}

// needs are what a task wants of a cluster.
type needs struct {
	limits     drain.SchedulerOptions
	policy     drain.Policy
	responders []string
	own        map[string]drain.Responder // the program's own
	release    string                     // the holder whose requests to responders are to be taken back, empty for nobody's
	deletes    bool                       // --disable-eviction
	overdue    time.Duration              // --skip-wait-for-delete-timeout
	placement  bool                       // the estimate of where replacements fit
	deadline   time.Time                  // when --timeout ends; zero for never
	conditions bool                       // --node-conditions
}

// connect watches the cluster and returns when all of it has been seen. The watches go on when ctx ends, for what must be given back
// then; close ends them.
func connect(ctx context.Context, s *settings.Connection, tell *teller, n needs) (*cluster, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	c := &cluster{reach: &reach{}, deletes: n.deletes}
	config.Wrap(c.reach.wrapTransport)
	if c.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	options := kube.CacheOptionsFor(n.policy)
	options.Placement = n.placement
	factory := kube.NewFactory(c.clientset, options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.cache, c.close = cache.View(), func() {
		stop()
		if c.reach.downCause() == nil { // else the informers may be in a long pause between two tries
			factory.Shutdown()
		}
	}
	factory.StartWithContext(watching)
	slow := time.AfterFunc(sayAfter, func() { tell.say("Looking at the cluster at " + config.Host) })
	limit, why := syncLimit(s, n)
	err = c.synced(ctx, cache, limit, why)
	if slow.Stop(); err != nil {
		c.close()
		return nil, fmt.Errorf("looking at the cluster at %s: %w", config.Host, err)
	}
	c.reach.changed = tell.reportReach
	if err := c.newDrainer(config, s.RequestTimeout(), n); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// syncLimit is how long the first look may take, and what sets that limit.
func syncLimit(s *settings.Connection, n needs) (limit time.Duration, why string) {
	limit, why = syncTime, ""
	if d := s.RequestTimeout(); d > 0 && d < limit {
		limit, why = d, " (--request-timeout)"
	}
	if left := time.Until(n.deadline); !n.deadline.IsZero() && left < limit {
		limit, why = max(left, 0), " (--timeout)"
	}
	return limit, why
}

// quietLog discards the log of client-go, unless -v asks for it: what goes wrong is said by this command, with what
// follows from it.
func (a *app) quietLog(s *settings.Connection) {
	if !s.LogsRequests() {
		klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	}
	for _, note := range s.FlagNotes() {
		fmt.Fprintln(a.errs, "drain: note:", note)
	}
}

// synced waits for the cache, but neither for a right that is missing nor for an API server that is away.
func (c *cluster) synced(ctx context.Context, cache *kube.Cache, limit time.Duration, why string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		err := cache.Check()
		if err == nil {
			return nil
		}
		if denied := permanentDenials(err); denied != nil {
			return explainUnauthorized(denied)
		}
		if down := c.reach.downCause(); down != nil {
			return fmt.Errorf("the API server does not answer: %w; nothing was done", down)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return &codedError{code: exitInterrupted, err: errors.New("interrupted before anything was done")}
			}
			return fmt.Errorf("not seen whole within %s%s; nothing was done: %w", limit.Round(time.Millisecond), why, err)
		case <-look.C:
		}
	}
}

// explainUnauthorized says in the words of kubectl's users that the API server does not know the user.
func explainUnauthorized(err error) error {
	if apierrors.IsUnauthorized(err) {
		return errors.New("the API server refuses the credentials (Unauthorized): give others by --kubeconfig, --user " +
			"or --token; nothing was done")
	}
	return err
}

// permanentDenials are the parts of err that no waiting will mend.
func permanentDenials(err error) error {
	return dropErrors(err, func(e error) bool { return !apierrors.IsForbidden(e) && !apierrors.IsUnauthorized(e) })
}

// newDrainer makes the Drainer on the cache.
func (c *cluster) newDrainer(config *rest.Config, timeout time.Duration, n needs) error {
	client, err := kube.NewClientForConfig(config, nil, kube.ClientOptions{
		Timeout: timeout, QPS: max(kube.DefaultQPS, float32(2*n.limits.Rate)),
	})
	if err != nil {
		return err
	}
	leases, err := kube.NewLeaseKeeper(c.clientset, kube.Options{Timeout: timeout})
	if err != nil {
		return err
	}
	scheduler, err := drain.NewScheduler(n.limits)
	if err != nil {
		return err
	}
	c.dryClient = client
	requests := c.bypassSafeguards(client, n)
	responders, err := c.responders(config, timeout, n)
	if err != nil {
		return err
	}
	c.client = &strictClient{Client: requests, denied: make(chan error, 1), judge: c.dryRemove}
	c.drainer, err = drain.New(drain.Options{
		Cache: c.cache, Client: c.client, Scheduler: scheduler, Leases: leases, Responders: responders,
		NodeConditions: n.conditions,
	})
	return err
}

// bypassSafeguards changes cache and client for what kubectl's --disable-eviction and --skip-wait-for-delete-timeout
// ask for.
func (c *cluster) bypassSafeguards(client drain.Client, n needs) drain.Client {
	if n.deletes {
		client, c.cache = deletingClient{client}, withoutBudgets(c.cache)
	}
	if n.overdue > 0 {
		c.overdue = &overdueFilter{limit: n.overdue, hidden: map[string]drain.PodRef{}}
		client, c.cache = c.overdue.filterClient(client), c.overdue.filterCache(c.cache)
	}
	return client
}
