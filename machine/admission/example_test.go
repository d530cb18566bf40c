// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/admission"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// The last worker is to be deleted. A Reviewer is an http.Handler too; with machine/kube its Fleet is that of an API server.
func ExampleReviewer() {
	store := &controllertest.Store{}
	m := machine.Machine{Key: machine.Key{Namespace: "fleet", Name: "w0"}, UID: "5e1f"}
	m.Spec.Roles = []string{"worker"}
	store.Put(m)
	r := admission.Reviewer{Fleet: controller.Fleet{Machines: store}}

	q := &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Delete, Namespace: "fleet", Name: "w0"}
	q.Resource.Group, q.Resource.Version, q.Resource.Resource = v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "machines"
	q.OldObject = runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"fleet","name":"w0"},"spec":{"roles":["worker"]},"status":{"token":"t","incarnation":1}}`)}
	answer := r.Review(context.Background(), &admissionv1.AdmissionReview{Request: q})
	fmt.Println(answer.Response.Allowed, answer.Response.Result.Message)
	// Output: false Role: fleet/w0: is the last with role "worker"
}
