// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/admission"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// fleet is one in memory.
type fleet struct {
	machines []machine.Machine
	sets     []machine.Set
	sick     string
	err      error
}

func (f *fleet) reviewer() admission.Reviewer {
	return admission.Reviewer{Fleet: controller.Fleet{Machines: f, Members: members{f}}, Groups: groups{f}}
}

func (f *fleet) List(context.Context) ([]machine.Machine, error) { return f.machines, f.err }

type members struct{ *fleet }

// List says that each machine of the control plane has a member.
func (m members) List(_ context.Context, machines []machine.Machine) (all []machine.Member, err error) {
	for _, is := range machines {
		if machine.Protected(is.Spec.Roles) {
			all = append(all, machine.Member{Name: is.Name, Machine: is.Key, Healthy: is.Name != m.sick})
		}
	}
	return all, nil
}

type groups struct{ *fleet }

func (g groups) Read(context.Context, string, bool) (controller.Group, error) {
	return controller.Group{Sets: g.sets, Machines: g.machines}, g.err
}

// newFleet has three machines of the control plane, and two workers of a set of a deployment.
func newFleet() *fleet {
	f := &fleet{sets: []machine.Set{{Key: machine.Key{Namespace: "fleet", Name: "s"}, UID: "uid-s", Owner: machine.Owner{UID: "uid-d", Name: "d"}}}}
	for name, role := range map[string]string{"c0": "control-plane", "c1": "control-plane", "c2": "control-plane", "w0": "worker", "w1": "worker"} {
		m := machine.Machine{Key: machine.Key{Namespace: "fleet", Name: name}, UID: "uid-" + name}
		m.Spec.Roles, m.Phase, m.Token, m.Incarnation = []string{role}, machine.PhaseRunning, "t-"+name, 1
		if role == "worker" {
			m.Owner = machine.Owner{UID: "uid-s", Name: "s"}
		}
		f.machines = append(f.machines, m)
	}
	return f
}

func (f *fleet) object(name string, change func(*v1alpha1.Machine)) runtime.RawExtension {
	o := &v1alpha1.Machine{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.MachineKind}}
	o.Namespace, o.Name, o.UID = "fleet", name, types.UID("uid-"+name)
	for _, m := range f.machines {
		if m.Name == name {
			o.Spec.Roles, o.Status.Phase, o.Status.Token, o.Status.Incarnation = m.Spec.Roles, v1alpha1.MachinePhase(m.Phase), m.Token, 1
		}
	}
	if change != nil {
		change(o)
	}
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: data}
}

func request(operation admissionv1.Operation, resource, sub, name string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "r1", Operation: operation, SubResource: sub, Name: name, Namespace: "fleet",
		Resource: metav1.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: resource},
	}
}

func entered(o *v1alpha1.Machine) { o.Spec.Decommission = true }

// scale is a request for that many replicas of what had two.
func scale(resource, sub, uid, replicas string) *admissionv1.AdmissionRequest {
	q := request(admissionv1.Update, resource, sub, "s")
	q.OldObject.Raw = []byte(`{"metadata":{"uid":"` + uid + `"},"spec":{"replicas":2}}`)
	q.Object.Raw = []byte(`{"metadata":{"uid":"` + uid + `"},"spec":{` + replicas + `}}`)
	return q
}

// A reviewCase is one request of TestReview.
type reviewCase struct {
	name    string
	request func(f *fleet) *admissionv1.AdmissionRequest
	change  func(f *fleet, r *admission.Reviewer)
	// refused is part of the refusal, warned of a warning; empty is none.
	refused, warned string
}

func deletion(name string, change func(*v1alpha1.Machine)) func(*fleet) *admissionv1.AdmissionRequest {
	return func(f *fleet) *admissionv1.AdmissionRequest {
		q := request(admissionv1.Delete, "machines", "", name)
		q.OldObject = f.object(name, change)
		return q
	}
}

func entering(name string) func(*fleet) *admissionv1.AdmissionRequest {
	return func(f *fleet) *admissionv1.AdmissionRequest {
		q := request(admissionv1.Update, "machines", "", name)
		q.OldObject, q.Object = f.object(name, nil), f.object(name, entered)
		return q
	}
}

func scaling(resource, sub, uid, replicas string) func(*fleet) *admissionv1.AdmissionRequest {
	return func(*fleet) *admissionv1.AdmissionRequest { return scale(resource, sub, uid, replicas) }
}

func ending(resource, uid, options string) func(*fleet) *admissionv1.AdmissionRequest {
	return func(*fleet) *admissionv1.AdmissionRequest {
		q := request(admissionv1.Delete, resource, "", "s")
		q.OldObject.Raw, q.Options.Raw = []byte(`{"metadata":{"uid":"`+uid+`"}}`), []byte(options)
		return q
	}
}

func reviewCases() []reviewCase {
	sick := func(f *fleet, _ *admission.Reviewer) { f.sick = "c1" }
	warn := func(f *fleet, r *admission.Reviewer) { f.sick, r.WarnOnly = "c1", true }
	return []reviewCase{
		{name: "a worker of two", request: deletion("w0", nil)},
		{name: "a machine of the control plane that was not entered", request: deletion("c0", nil), refused: "set spec.decommission first"},
		{name: "3 to 2", request: deletion("c0", entered), warned: "2 of 3 members would remain"},
		{name: "3 to 2 with an unhealthy member", request: deletion("c0", entered), change: sick, refused: `member "c1" is unhealthy`},
		{name: "3 to 2 with an unhealthy member, as a warning", request: deletion("c0", entered), change: warn, warned: `member "c1" is unhealthy`},
		{name: "it is entered", request: entering("c0"), warned: "2 of 3 members would remain"},
		{name: "it is entered with an unhealthy member", request: entering("c0"), change: sick, refused: `member "c1" is unhealthy`},
		{name: "its end has begun", request: deletion("c0", func(o *v1alpha1.Machine) {
			o.Status.Release = &v1alpha1.MachineRelease{Mode: "Retain", Begun: true}
		}), change: sick},
		{name: "it is retired", request: deletion("c0", func(o *v1alpha1.Machine) { o.Status.Phase = "Retired" }), change: sick},
		{name: "it never had an instance", request: deletion("new", nil), change: sick},
		{name: "something else of a machine", request: func(f *fleet) *admissionv1.AdmissionRequest {
			q := request(admissionv1.Update, "machines", "status", "c0")
			q.OldObject, q.Object = f.object("c0", nil), f.object("c0", entered)
			return q
		}, change: sick},
		{name: "the last two workers by a set", request: scaling("machinesets", "", "uid-s", `"replicas":0`), refused: `last with role "worker"`},
		{name: "the last two workers by a scale", request: scaling("machinesets", "scale", "uid-s", ``), refused: `last with role "worker"`},
		{name: "one of two workers by a scale", request: scaling("machinesets", "scale", "uid-s", `"replicas":1`)},
		{name: "more workers", request: scaling("machinesets", "scale", "uid-s", `"replicas":3`)},
		{name: "the last two workers by a deployment", request: scaling("machinedeployments", "scale", "uid-d", ``), refused: `last with role "worker"`},
		{name: "a set is deleted", request: ending("machinesets", "uid-s", `{}`), refused: `last with role "worker"`},
		{name: "a set is deleted, and its machines stay", request: ending("machinesets", "uid-s", `{"propagationPolicy":"Orphan"}`)},
		{name: "nobody knows sets", request: ending("machinesets", "uid-s", ``), change: func(_ *fleet, r *admission.Reviewer) { r.Groups = nil }, refused: "nobody who knows sets"},
		{name: "machines can't be listed", request: deletion("w0", nil), change: func(f *fleet, _ *admission.Reviewer) { f.err = errors.New("away") }, refused: "this can't be checked: gate: list machines: away"},
		{name: "machines can't be listed, as a warning", request: deletion("w0", nil), change: func(f *fleet, r *admission.Reviewer) {
			f.err, r.WarnOnly = errors.New("away"), true
		}, warned: "this can't be checked"},
		{name: "members can't be asked", request: deletion("c0", entered), change: func(_ *fleet, r *admission.Reviewer) { r.Fleet.Members = nil }, refused: "nobody who knows the members"},
		{name: "what is no machine", request: func(*fleet) *admissionv1.AdmissionRequest {
			q := request(admissionv1.Delete, "machines", "", "c0")
			q.OldObject.Raw = []byte(`[]`)
			return q
		}, refused: "oldObject: "},
		{name: "of another group", request: func(f *fleet) *admissionv1.AdmissionRequest {
			q := deletion("c0", nil)(f)
			q.Resource.Group = "cluster.x-k8s.io"
			return q
		}},
	}
}

// R-MA-25: each request that would end machines is allowed, warned of or refused as the checks say; what can't be checked is refused.
func TestReview(t *testing.T) {
	for _, c := range reviewCases() {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet()
			r := f.reviewer()
			if c.change != nil {
				c.change(f, &r)
			}
			got := r.Review(t.Context(), &admissionv1.AdmissionReview{Request: c.request(f)}).Response
			if got.UID != "r1" || got.Allowed != (c.refused == "") {
				t.Fatalf("answer %+v, want a refusal: %q", got, c.refused)
			}
			if !got.Allowed && !strings.Contains(got.Result.Message, c.refused) {
				t.Errorf("refused for %q, want %q", got.Result.Message, c.refused)
			}
			if w := strings.Join(got.Warnings, "\n"); (w == "") != (c.warned == "") || !strings.Contains(w, c.warned) {
				t.Errorf("warnings %q, want %q", w, c.warned)
			}
		})
	}
}

// What is no review is no answer, so that the API server's failure policy decides.
func TestBadReviews(t *testing.T) {
	r := newFleet().reviewer()
	for _, c := range []struct {
		method, body string
		want         int
	}{
		{http.MethodGet, "", http.StatusMethodNotAllowed},
		{http.MethodPost, "", http.StatusBadRequest},
		{http.MethodPost, "{}", http.StatusBadRequest},
		{http.MethodPost, `{"apiVersion":"admission.k8s.io/v1"}`, http.StatusBadRequest},
		{http.MethodPost, `{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"1"}}`, http.StatusBadRequest},
		{http.MethodPost, `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1"},"x":"` + strings.Repeat("x", 9<<20) + `"}`, http.StatusBadRequest},
		{http.MethodPost, `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1"}}`, http.StatusOK},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, "/", strings.NewReader(c.body)))
		if w.Code != c.want {
			t.Errorf("%s %.60s: code %d, want %d", c.method, c.body, w.Code, c.want)
		}
	}
	if got := r.Review(t.Context(), nil).Response; got.Allowed {
		t.Error("a review of nothing is allowed")
	}
}
