// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/restclient"
)

const (
	// fieldManager stands in the managed fields of what this package writes.
	fieldManager = "belay-drain"
	// defaultTimeout bounds each call where the options have no other. An API server works on an eviction for up to 34
	// s; its own answer is worth waiting for, as without one nobody knows whether the pod is going.
	defaultTimeout = 40 * time.Second
	// DefaultQPS bounds the requests a second of a [Client] where [ClientOptions] have no other.
	DefaultQPS = 50
	// defaultBurst is how many requests may come at once where [ClientOptions] have no other.
	defaultBurst = 100
)

// pageSize is how many pods are read at once.
const pageSize = 500

// ClientOptions are those of a [Client]. The zero value is the usual choice.
type ClientOptions struct {
	// Timeout bounds each call. Zero means 40 seconds.
	Timeout time.Duration
	// QPS and Burst bound the requests a second, apart from the [drain.Scheduler], which has a limit of its own for
	// evictions. Zero means [DefaultQPS], and 100 at once; there is no unlimited.
	QPS   float32
	Burst int
}

// A Client is a [drain.Client] for an API server. No call is repeated, whatever the server asks for: the Drainer
// decides when to ask again. Errors can be given to [drain.Classify]. Its methods may be called from several
// goroutines.
type Client interface {
	drain.Client
	// DryRunEvict asks the server whether it would accept an eviction now. It changes nothing.
	DryRunEvict(ctx context.Context, pod drain.PodRef) error
}

type client struct {
	core    rest.Interface
	timeout time.Duration
}

// NewClient returns a Client that sends its requests by a clientset, with its rate limit, beside those of the
// clientset's other users. The QPS and Burst of o must be zero. A fake clientset cannot evict: package drain/draintest
// has a Client for tests.
func NewClient(clientset kubernetes.Interface, o ClientOptions) (Client, error) {
	check := checkClient("drain/kube.NewClient", o)
	check.Require("clientset", clientset, "see k8s.io/client-go/kubernetes.NewForConfig, or drain/kube.NewClientForConfig")
	if o.QPS > 0 || o.Burst > 0 {
		check.Wrong("ClientOptions.QPS and Burst are those of the clientset: set them in its rest.Config, or use NewClientForConfig")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	return newClient(check, clientset, o)
}

// NewClientForConfig returns a Client with a rate limit of its own. Limits in config, and timeouts in it and in
// httpClient, aren't used; neither is changed. The httpClient may be nil; GetHTTPClient of a controller-runtime manager
// returns one that shares its connections.
func NewClientForConfig(config *rest.Config, httpClient *http.Client, o ClientOptions) (Client, error) {
	check := checkClient("drain/kube.NewClientForConfig", o)
	check.Require("config", config, "see k8s.io/client-go/tools/clientcmd or k8s.io/client-go/rest.InClusterConfig")
	if err := check.Err(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.RateLimiter = nil
	config.QPS, config.Burst = orDefault(o.QPS, DefaultQPS), orDefault(o.Burst, defaultBurst)
	clientset, err := newClientset(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("drain/kube.NewClientForConfig: %w", err)
	}
	return newClient(check, clientset, o)
}

func checkClient(call string, o ClientOptions) *option.Checker {
	check := option.For(call, nil)
	if o.Timeout < 0 || o.QPS < 0 || o.Burst < 0 {
		check.Wrong("ClientOptions.Timeout, QPS and Burst must not be negative, got %s, %g and %d", o.Timeout, o.QPS, o.Burst)
	}
	return check
}

func newClientset(config *rest.Config, httpClient *http.Client) (*kubernetes.Clientset, error) {
	config, httpClient, err := restclient.WithoutTimeouts(config, httpClient)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfigAndClient(config, httpClient)
}

func newClient(check *option.Checker, clientset kubernetes.Interface, o ClientOptions) (Client, error) {
	core := clientset.CoreV1().RESTClient()
	check.Require("clientset.CoreV1().RESTClient()", core, "a fake clientset has none: use drain/draintest in tests")
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &client{core: core, timeout: orDefault(o.Timeout, defaultTimeout)}, nil
}

// errNoUID is for a pod whose UID is empty, which the server would take for no precondition.
var errNoUID = errors.New("the UID must be set")

// Evict posts an eviction with the pod's UID as precondition.
func (c *client) Evict(ctx context.Context, pod drain.PodRef, gracePeriodSeconds *int64) error {
	options := &metav1.DeleteOptions{GracePeriodSeconds: gracePeriodSeconds}
	return c.evict(ctx, pod, options)
}

// DryRunEvict implements [Client].
func (c *client) DryRunEvict(ctx context.Context, pod drain.PodRef) error {
	// In the body the API server obeys it, but tells admission nothing of it, so that a webhook would act. In the query it
	// tells admission.
	return c.evict(ctx, pod, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, "dryRun", metav1.DryRunAll)
}

// evict posts an eviction, with these keys and values in its query.
func (c *client) evict(ctx context.Context, pod drain.PodRef, options *metav1.DeleteOptions, query ...string) error {
	if pod.UID == "" {
		return fmt.Errorf("evicting pod %q: %w", pod, errNoUID)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	options.Preconditions = &metav1.Preconditions{UID: &pod.UID}
	body := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: options,
	}
	request := c.core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction")
	for i := 0; i+1 < len(query); i += 2 {
		request = request.Param(query[i], query[i+1])
	}
	if err := request.MaxRetries(0).Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("evicting pod %q: %w", pod, err)
	}
	return nil
}

// Delete deletes the pod with its UID as precondition.
func (c *client) Delete(ctx context.Context, pod drain.PodRef, gracePeriodSeconds *int64) error {
	if pod.UID == "" {
		return fmt.Errorf("deleting pod %q: %w", pod, errNoUID)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	options := &metav1.DeleteOptions{
		TypeMeta:           metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		GracePeriodSeconds: gracePeriodSeconds, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	}
	request := c.core.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name)
	if err := request.MaxRetries(0).Body(options).Do(ctx).Error(); err != nil {
		return fmt.Errorf("deleting pod %q: %w", pod, err)
	}
	return nil
}

// PatchNode sends a JSON merge patch and returns the Node as it is then, whole.
func (c *client) PatchNode(ctx context.Context, name string, patch []byte, status bool) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request := c.core.Patch(types.MergePatchType).Resource("nodes").Name(name).Param("fieldManager", fieldManager)
	what := fmt.Sprintf("node %q", name)
	if status {
		request, what = request.SubResource("status"), "the status of "+what
	}
	node := &corev1.Node{}
	if err := request.MaxRetries(0).Body(patch).Do(ctx).Into(node); err != nil {
		return nil, fmt.Errorf("patching %s: %w", what, err)
	}
	return node, nil
}

// GetNode reads a Node from etcd, not from a cache of the API server. It lists by name, so that it needs no right that
// the watch does not.
func (c *client) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	list := &corev1.NodeList{}
	request := c.core.Get().Resource("nodes").VersionedParams(&options, scheme.ParameterCodec)
	if err := request.MaxRetries(0).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("reading node %q: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("reading node %q: %w", name, apierrors.NewNotFound(corev1.Resource("nodes"), name))
	}
	return &list.Items[0], nil
}

// ListPods reads the pods of a node from etcd, not from a cache of the API server.
func (c *client) ListPods(ctx context.Context, node string) ([]*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(), Limit: pageSize}
	var pods []*corev1.Pod
	for {
		page := &corev1.PodList{}
		request := c.core.Get().Resource("pods").VersionedParams(&options, scheme.ParameterCodec)
		if err := request.MaxRetries(0).Do(ctx).Into(page); err != nil {
			return nil, fmt.Errorf("listing the pods of node %q: %w", node, err)
		}
		for i := range page.Items {
			pods = append(pods, &page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return pods, nil
		}
	}
}

// orDefault replaces the zero value.
func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
