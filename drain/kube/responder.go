// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/option"
)

// The annotations by which a pod and a drain talk. The package comment says how.
const (
	// RequestAnnotation asks a pod to evacuate.
	RequestAnnotation = annotationPrefix + "evacuate"
	// answerAnnotation is the pod's answer.
	answerAnnotation = annotationPrefix + "evacuation"
)

// errPodGone is wrapped by the errors of an annotationResponder about a pod that isn't there, or is another one of the same name.
var errPodGone = errors.New("the pod is gone")

// An answerError is an answer of a pod that can't be understood.
type answerError struct {
	// Pod is whose it is, Annotation where it stands.
	Pod        drain.PodRef
	Annotation string
	Err        error
}

// Error names the pod and the annotation.
func (e *answerError) Error() string {
	return fmt.Sprintf("annotation %q of pod %q: %v", e.Annotation, e.Pod, e.Err)
}

// Unwrap returns what is wrong with it.
func (e *answerError) Unwrap() error { return e.Err }

// An annotationResponder asks pods by their annotations.
type annotationResponder struct {
	caller
	pods drain.Cache
}

var _ drain.Responder = (*annotationResponder)(nil)

// NewAnnotationResponder returns a [drain.Responder] for pods that evacuate themselves: it asks by an annotation of the pod,
// [RequestAnnotation], and reads the answer from another in the cache. It writes when it asks and when it takes that back, and not in
// between. Its methods may be called from several goroutines.
func NewAnnotationResponder(client kubernetes.Interface, pods drain.Cache, o Options) (drain.Responder, error) {
	check := option.For("drain/kube.NewAnnotationResponder", nil)
	checkCaller(check, client, o)
	check.Require("pods", pods, "see drain/kube.NewCache")
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &annotationResponder{caller: newCaller(client, o), pods: pods}, nil
}

// request is the value of RequestAnnotation.
type request struct {
	Holder      string `json:"holder"`
	Maintenance string `json:"maintenance"`
	Responder   string `json:"responder"`
}

// answer is the value of AnswerAnnotation.
type answer struct {
	Responder string             `json:"responder"`
	Progress  drain.HookProgress `json:"progress"`
	Beat      string             `json:"beat"`
	Message   string             `json:"message"`
}

// Respond asks the pod, if it has not been asked, and returns its answer. Where another holder has asked the same responder, its
// request stands for both. An answer that can't be understood is an error, and so is a pod that isn't there.
func (r *annotationResponder) Respond(ctx context.Context, req drain.HookRequest) (drain.HookAnswer, error) {
	pod := r.findPod(req.Pod)
	if pod == nil {
		return drain.HookAnswer{}, fmt.Errorf("asking pod %q to evacuate: %w", req.Pod, errPodGone)
	}
	want := request{Holder: req.Holder, Maintenance: req.Maintenance, Responder: req.Responder}
	if got := requestOf(pod); got != want && (got.Responder != want.Responder || got.Holder == want.Holder) {
		if err := r.askPod(ctx, pod, want); err != nil {
			return drain.HookAnswer{}, fmt.Errorf("asking pod %q to evacuate: %w", req.Pod, err)
		}
		return drain.HookAnswer{Progress: drain.HookAsked}, nil
	}
	return answerOf(pod, req)
}

// Cancel takes the holder's request off the pod, and leaves that of another holder.
func (r *annotationResponder) Cancel(ctx context.Context, req drain.HookRequest) error {
	if pod := r.findPod(req.Pod); pod != nil {
		if got := requestOf(pod); got.Holder != "" && got.Holder != req.Holder {
			return nil
		}
	}
	err := r.patchAnnotations(ctx, req.Pod, "", map[string]any{RequestAnnotation: nil})
	if err != nil && !apierrors.IsNotFound(err) && !isOtherUID(err) {
		return fmt.Errorf("taking back the request to pod %q: %w", req.Pod, err)
	}
	return nil
}

// askPod writes the request, and removes an answer, which was to another one. A Cache that lags behind the pod's answer
// to this very request must not remove it: then nothing is written, and the change that the Cache has yet to see brings the next call.
func (r *annotationResponder) askPod(ctx context.Context, pod *corev1.Pod, want request) error {
	value, err := json.Marshal(want)
	if err != nil {
		return err
	}
	ref := drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	changes := map[string]any{RequestAnnotation: string(value), answerAnnotation: nil}
	err = r.patchAnnotations(ctx, ref, pod.ResourceVersion, changes)
	switch {
	case apierrors.IsConflict(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", errPodGone, err)
	default:
		return err
	}
}

// patchAnnotations changes annotations of the pod, if it is still the same, and, unless version is empty, unchanged.
func (r *annotationResponder) patchAnnotations(
	ctx context.Context, pod drain.PodRef, version string, annotations map[string]any,
) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	meta := map[string]any{"uid": pod.UID, "annotations": annotations}
	if version != "" {
		meta["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// isOtherUID says whether the server refused a patch as the object has another UID. To the server that is an attempt to change it.
func isOtherUID(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return apierrors.IsConflict(err) || ok && cause.Field == "metadata.uid"
}

// findPod returns the pod from the cache, or nil if it is another one or not there.
func (r *annotationResponder) findPod(ref drain.PodRef) *corev1.Pod {
	pod := r.pods.Pod(ref.Namespace, ref.Name)
	if pod == nil || pod.UID != ref.UID {
		return nil
	}
	return pod
}

// requestOf returns the zero value where there is none, or none that this package has written.
func requestOf(pod *corev1.Pod) request {
	var got request
	if err := json.Unmarshal([]byte(pod.Annotations[RequestAnnotation]), &got); err != nil {
		return request{}
	}
	return got
}

// answerOf reads the answer to a request that is on the pod. That of another responder is none.
func answerOf(pod *corev1.Pod, req drain.HookRequest) (drain.HookAnswer, error) {
	value, ok := pod.Annotations[answerAnnotation]
	if !ok {
		return drain.HookAnswer{Progress: drain.HookAsked}, nil
	}
	var a answer
	if err := json.Unmarshal([]byte(value), &a); err != nil {
		return drain.HookAnswer{}, &answerError{Pod: req.Pod, Annotation: answerAnnotation, Err: err}
	}
	if a.Responder != req.Responder {
		return drain.HookAnswer{Progress: drain.HookAsked}, nil
	}
	switch a.Progress {
	case drain.HookWorking, drain.HookDone, drain.HookDeclined:
		return drain.HookAnswer{Progress: a.Progress, Beat: a.Beat, Message: shortened(a.Message)}, nil
	default:
		err := fmt.Errorf("progress must be %s, %s or %s, got %.40q", drain.HookWorking, drain.HookDone, drain.HookDeclined, a.Progress)
		return drain.HookAnswer{}, &answerError{Pod: req.Pod, Annotation: answerAnnotation, Err: err}
	}
}
