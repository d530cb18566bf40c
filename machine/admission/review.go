// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// Groups has the sets and deployments of a namespace: github.com/belayproject/belay/machine/kube.Groups is one.
type Groups interface {
	Read(ctx context.Context, namespace string, live bool) (controller.Group, error)
}

// A Reviewer judges requests. Fleet.Machines is required.
type Reviewer struct {
	// Fleet is what the checks look at.
	Fleet controller.Fleet
	// Groups is needed for requests about sets and deployments: without it they are refused.
	Groups Groups
	// As is that of [machine.GateView].
	As map[machine.Gate]machine.Severity
	// WarnOnly refuses nothing. What speaks against a request is a warning.
	WarnOnly bool
}

// Review answers a review. The answer is another review, with the UID of the request.
func (r Reviewer) Review(ctx context.Context, review *admissionv1.AdmissionReview) *admissionv1.AdmissionReview {
	out := &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}}
	if review == nil || review.Request == nil {
		out.Response = refused("the review has no request")
		return out
	}
	out.Response = r.respond(ctx, review.Request)
	out.Response.UID = review.Request.UID
	return out
}

func (r Reviewer) respond(ctx context.Context, q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	found, why, err := r.judge(ctx, q)
	if err != nil {
		text := "this can't be checked: " + err.Error()
		if r.WarnOnly {
			return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{line(text)}}
		}
		return refused(text)
	}
	blocker := machine.Blocker(found)
	if blocker != "" && why != nil {
		blocker += fmt.Sprintf(" (%v)", why)
	}
	if blocker != "" && !r.WarnOnly {
		return refused(blocker)
	}
	answer := &admissionv1.AdmissionResponse{Allowed: true}
	for _, f := range found {
		answer.Warnings = append(answer.Warnings, line(f.String()))
	}
	return answer
}

// refused is a refusal with its reason.
func refused(why string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: why,
	}}
}

// line is a text that can stand in a Warning header.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// judge says what speaks against a request. why is what could not be asked.
func (r Reviewer) judge(ctx context.Context, q *admissionv1.AdmissionRequest) (found []machine.Finding, why, err error) {
	e, err := r.ending(ctx, q)
	if err != nil || len(e.keys) == 0 {
		return nil, nil, err
	}
	v, why, err := r.Fleet.View(ctx, e.keys...)
	if err != nil {
		return nil, nil, err
	}
	v.As = r.As
	if e.machine != nil {
		v.Machines = slices.DeleteFunc(v.Machines, func(m machine.Machine) bool { return m.Key == e.machine.Key })
		v.Machines = append(v.Machines, *e.machine)
	}
	return machine.CheckEnd(v), why, nil
}
