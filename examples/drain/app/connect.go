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
	"k8s.io/client-go/tools/clientcmd"
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
	cache   drain.Cache
	drainer *drain.Drainer
	client  *strictClient
	close   func()
}

// A strictClient notes when a Node may not be written. A drain would wait for the right; a person is to be told at once.
type strictClient struct {
	drain.Client
	denied chan error // holds the first one
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
}

// connect watches the cluster and returns when all of it has been seen. The watches go on when ctx ends, for what must be given back
// then; close ends them.
func connect(ctx context.Context, s settings.Cluster, tell *teller, n needs) (*cluster, error) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // what goes wrong is said by this command, with what follows from it
	config, err := restConfig(s)
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	options := kube.CacheOptions{DaemonSets: true, Volumes: n.policy.Volumes || n.policy.Removal != nil}
	factory := kube.NewFactory(clientset, options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &cluster{cache: cache.View(), close: func() { stop(); factory.Shutdown() }}
	factory.StartWithContext(watching)
	slow := time.AfterFunc(sayAfter, func() { tell.say("Looking at the cluster at " + config.Host) })
	err = synced(ctx, cache)
	if slow.Stop(); err != nil {
		c.close()
		return nil, fmt.Errorf("looking at the cluster at %s: %w", config.Host, err)
	}
	if err := c.newDrainer(config, clientset, n); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// restConfig reads the kubeconfig as kubectl does.
func restConfig(s settings.Cluster) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("there is none: give --kubeconfig, or set $KUBECONFIG")
		}
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.UserAgent = "belay-drain"
	return config, nil
}

// synced waits for the cache, but not for a right that is missing.
func synced(ctx context.Context, cache *kube.Cache) error {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		err := cache.Check()
		if err == nil {
			return nil
		}
		if denied := denials(err); denied != nil {
			return denied
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return &codedError{code: exitInterrupted, err: errors.New("interrupted before anything was done")}
			}
			return fmt.Errorf("not seen whole within %s: %w", syncTime, err)
		case <-look.C:
		}
	}
}

// denials are the parts of err that no waiting will mend.
func denials(err error) error {
	return without(err, func(e error) bool { return !apierrors.IsForbidden(e) && !apierrors.IsUnauthorized(e) })
}

// newDrainer makes the Drainer on the cache.
func (c *cluster) newDrainer(config *rest.Config, clientset kubernetes.Interface, n needs) error {
	client, err := kube.NewClientForConfig(config, nil, kube.ClientOptions{QPS: max(kube.DefaultQPS, float32(2*n.limits.Rate))})
	if err != nil {
		return err
	}
	leases, err := kube.NewLeaseKeeper(clientset, kube.Options{})
	if err != nil {
		return err
	}
	scheduler, err := drain.NewScheduler(n.limits)
	if err != nil {
		return err
	}
	responders, err := c.responders(clientset, n)
	if err != nil {
		return err
	}
	c.client = &strictClient{Client: client, denied: make(chan error, 1)}
	c.drainer, err = drain.New(drain.Options{Cache: c.cache, Client: c.client, Scheduler: scheduler, Leases: leases, Responders: responders})
	return err
}
