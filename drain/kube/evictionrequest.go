// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/restclient"
)

const (
	// requesterName is the spec.requester of the EvictionRequests, and so a label key of the Evictions.
	requesterName = "belay.dev/drain"
	// managedByLabel marks the EvictionRequests of this package. Its value is the field manager.
	managedByLabel = "app.kubernetes.io/managed-by"
	// The annotations of an EvictionRequest say for whom it is, and since when.
	holderAnnotation      = annotationPrefix + "holder"
	maintenanceAnnotation = annotationPrefix + "maintenance"
	sinceAnnotation       = annotationPrefix + "since"

	// requestResponder is the name under which Open adds the responder of NewEvictionRequester.
	requestResponder = "EvictionRequest"
	// unobservedLimit is how long an EvictionRequest waits for an evictionrequest-controller.
	unobservedLimit = 30 * time.Second
	// maxMessage bounds the message of an answer, in bytes: responders write what they like.
	maxMessage = 1024
)

// An evictionRequester asks for the eviction of pods by EvictionRequests.
type evictionRequester struct {
	objects   dynamic.Interface
	discovery discovery.DiscoveryInterface
	timeout   time.Duration
	now       func() time.Time

	mu     sync.Mutex
	api    servedAPI
	nodes  map[string]*nodePods     // by node
	views  map[string]*evictionView // by namespace
	unseen map[requestKey]time.Time // since when each EvictionRequest waits for a controller
}

// A requestKey names the EvictionRequest of a holder for a pod.
type requestKey struct {
	namespace, name string
}

var _ drain.PodResponder = (*evictionRequester)(nil)

// NewEvictionRequester returns a [drain.PodResponder] that asks for the eviction of a pod by an EvictionRequest of
// Kubernetes' API lifecycle.k8s.io/v1alpha1 and waits for the responders in the pod's spec.evictionResponders. Where
// the API server does not serve that API, the responder finds no pod: it asks once, and again after an hour. [Open]
// uses one by itself, under the name "EvictionRequest". httpClient may be nil. Its methods may be called from several
// goroutines.
//
// Each holder has one EvictionRequest a pod, whose name follows from both: after a crash the next process goes on with
// it. It belongs to the pod, so that it is deleted with it; Cancel withdraws and deletes it. The drain goes on to evict
// the pod when its own responders are done or have been passed over, when the EvictionRequest has failed, and when no
// evictionrequest-controller has observed it within 30 seconds.
func NewEvictionRequester(config *rest.Config, httpClient *http.Client, o Options) (drain.PodResponder, error) {
	const call = "drain/kube.NewEvictionRequester"
	check := option.For(call, nil)
	check.Require("config", config, "see k8s.io/client-go/tools/clientcmd or k8s.io/client-go/rest.InClusterConfig")
	checkTimeout(check, o)
	if err := check.Err(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS, config.Burst = nil, DefaultQPS, defaultBurst
	config, httpClient, err := restclient.WithoutTimeouts(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	r := &evictionRequester{
		timeout: orDefault(o.Timeout, shortTimeout), now: o.Now, nodes: map[string]*nodePods{},
		views: map[string]*evictionView{}, unseen: map[requestKey]time.Time{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	var errs [2]error
	r.objects, errs[0] = dynamic.NewForConfigAndClient(config, httpClient)
	r.discovery, errs[1] = discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	return r, nil
}

// Respond makes the EvictionRequest, where it does not exist, and says how it goes. An answer that the API server gives
// for good, such as a missing right, is HookDeclined with its words.
func (r *evictionRequester) Respond(ctx context.Context, req drain.HookRequest) (drain.HookAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	served, err := r.isServed(ctx)
	if err != nil {
		return drain.HookAnswer{}, err
	}
	if !served {
		return declineWith("the API server does not serve EvictionRequests"), nil
	}
	view, err := r.viewOf(ctx, req.Pod.Namespace)
	if isRefusal(err) {
		return declineWith(err.Error()), nil
	}
	if err != nil {
		return drain.HookAnswer{}, err
	}
	key := keyOf(req)
	request, err := r.ensureRequest(ctx, view.findRequest(key.name), req)
	if isRefusal(err) {
		return declineWith(fmt.Sprintf("no EvictionRequest can be made: %v", err)), nil
	}
	if err != nil {
		return drain.HookAnswer{}, fmt.Errorf("asking for the eviction of pod %q: %w", req.Pod, err)
	}
	view.keepRequest(request)
	return r.buildAnswer(key, request, view.findEviction(req.Pod.UID)), nil
}

// Cancel withdraws and deletes the holder's EvictionRequest. Those of other holders stay, and so does the Eviction as
// long as there is one of them.
func (r *evictionRequester) Cancel(ctx context.Context, req drain.HookRequest) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	key := keyOf(req)
	served, err := r.isServed(ctx)
	if err != nil || !served {
		return err
	}
	err = r.withdrawRequest(ctx, key)
	if apierrors.IsForbidden(err) && !r.mayExist(ctx, key) {
		err = nil // who may not use them has made none
	}
	if err != nil && !isMissing(err) {
		return fmt.Errorf("withdrawing EvictionRequest %s/%s: %w", key.namespace, key.name, err)
	}
	r.forgetRequest(key)
	return nil
}

// withdrawRequest sets the intent, and deletes the object: a finalizer may keep it after its deletion, with its intent.
func (r *evictionRequester) withdrawRequest(ctx context.Context, key requestKey) error {
	requests := r.objects.Resource(evictionapi.RequestsResource()).Namespace(key.namespace)
	withdrawn, err := requests.Patch(ctx, key.name, types.MergePatchType, intentPatch(evictionapi.IntentWithdrawn),
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return err
	}
	uid := withdrawn.GetUID()
	return requests.Delete(ctx, key.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

// isMissing reports whether the object is not there, or is another one, or its kind is not served.
func isMissing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsMethodNotSupported(err)
}

// mayExist reports whether the EvictionRequest was seen or made by this process, or is there.
func (r *evictionRequester) mayExist(ctx context.Context, key requestKey) bool {
	r.mu.Lock()
	view := r.views[key.namespace]
	r.mu.Unlock()
	if view != nil && view.findRequest(key.name) != nil {
		return true
	}
	requests := r.objects.Resource(evictionapi.RequestsResource()).Namespace(key.namespace)
	_, err := requests.Get(ctx, key.name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err)
}

// ensureRequest makes the EvictionRequest or sets its intent, where one of both is needed.
func (r *evictionRequester) ensureRequest(
	ctx context.Context, known *evictionapi.EvictionRequest, req drain.HookRequest,
) (*evictionapi.EvictionRequest, error) {
	requests := r.objects.Resource(evictionapi.RequestsResource()).Namespace(req.Pod.Namespace)
	if known == nil {
		object, err := evictionapi.EncodeRequest(newRequest(req, r.now()))
		if err != nil {
			return nil, err
		}
		created, err := requests.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			created, err = requests.Get(ctx, object.GetName(), metav1.GetOptions{})
		}
		if err != nil {
			return nil, err
		}
		if known, err = evictionapi.DecodeRequest(created); err != nil {
			return nil, err
		}
	}
	if known.Spec.Intent == evictionapi.IntentEviction || known.DeletionTimestamp != nil {
		return known, nil
	}
	changed, err := requests.Patch(ctx, known.Name, types.MergePatchType, intentPatch(evictionapi.IntentEviction),
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err
	}
	return evictionapi.DecodeRequest(changed)
}

// isRefusal reports whether the API server will not take the EvictionRequest however often it is sent.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)
}

func declineWith(message string) drain.HookAnswer {
	return drain.HookAnswer{Progress: drain.HookDeclined, Message: shortened(message)}
}

// keyOf derives the name of an EvictionRequest from the pod's UID and the holder.
func keyOf(req drain.HookRequest) requestKey {
	sum := sha256.Sum256([]byte(req.Holder))
	return requestKey{req.Pod.Namespace, fmt.Sprintf("belay-%s-%x", req.Pod.UID, sum[:5])}
}

// newRequest is the EvictionRequest of a holder for a pod.
func newRequest(req drain.HookRequest, now time.Time) *evictionapi.EvictionRequest {
	return &evictionapi.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: req.Pod.Namespace, Name: keyOf(req).name,
			Labels: map[string]string{managedByLabel: fieldManager},
			Annotations: map[string]string{
				holderAnnotation: req.Holder, maintenanceAnnotation: req.Maintenance,
				sinceAnnotation: now.UTC().Format(time.RFC3339Nano),
			},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Pod", Name: req.Pod.Name, UID: req.Pod.UID},
			},
		},
		Spec: evictionapi.EvictionRequestSpec{
			Target:    evictionapi.Target{Pod: &evictionapi.PodReference{Name: req.Pod.Name, UID: req.Pod.UID}},
			Requester: requesterName, Intent: evictionapi.IntentEviction,
		},
	}
}

func intentPatch(intent string) []byte {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"intent": intent}})
	if err != nil {
		return nil // strings can be marshalled
	}
	return patch
}

// forgetRequest drops what is known of an EvictionRequest.
func (r *evictionRequester) forgetRequest(key requestKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unseen, key)
	if view := r.views[key.namespace]; view != nil {
		view.dropRequest(key.name)
	}
}

// shortened bounds what a responder says to what a server may say.
func shortened(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "")
}
