// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

const (
	// maxReview is more than two objects of the size that an API server stores.
	maxReview = 8 << 20
	// reviewTime is how long an API server waits, unless it was told otherwise.
	reviewTime = 10 * time.Second
)

// ServeHTTP answers a POST of an AdmissionReview in JSON with one. What is no such review is a 400: the API server takes that for no answer.
func (r Reviewer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if w == nil || q == nil {
		return // there is no request to answer
	}
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST of an AdmissionReview", http.StatusMethodNotAllowed)
		return
	}
	var review admissionv1.AdmissionReview
	err := json.NewDecoder(http.MaxBytesReader(w, q.Body, maxReview)).Decode(&review)
	if err != nil || review.Request == nil || review.APIVersion != admissionv1.SchemeGroupVersion.String() {
		http.Error(w, "want an AdmissionReview of "+admissionv1.SchemeGroupVersion.String()+" with a request", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), reviewTime)
	defer cancel()
	data, err := json.Marshal(r.Review(ctx, &review))
	if err != nil {
		http.Error(w, "the answer can't be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who has gone away needs no answer
}
