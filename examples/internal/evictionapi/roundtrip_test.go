// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionapi_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/internal/evictionapi"
)

// fillFields sets every field to a value of its own: pointers, two elements of each list and one entry of each map.
func fillFields(v reflect.Value, next *int64) {
	*next++
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		*at = metav1.Unix(*next, 0)
		return
	case *metav1.FieldsV1:
		at.SetRawString(`{"f:spec":{}}`)
		return
	case *metav1.TypeMeta:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", *next))
	case reflect.Int32, reflect.Int64:
		v.SetInt(*next)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem(), next)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillFields(v.Index(0), next)
		fillFields(v.Index(1), next)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"key": fmt.Sprintf("value-%d", *next)}))
	case reflect.Struct:
		for i := range v.NumField() {
			fillFields(v.Field(i), next)
		}
	default:
		panic("no value for " + v.Type().String())
	}
}

// toUnstructured is the object as a dynamic client reads it.
func toUnstructured(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// checkSame decodes with k8s.io/api what the library has encoded, and compares it with what was there first.
func checkSame[T any](t *testing.T, want *T, encoded *unstructured.Unstructured, kind string) {
	t.Helper()
	if got := encoded.GroupVersionKind(); got != lifecyclev1alpha1.SchemeGroupVersion.WithKind(kind) {
		t.Fatalf("encoded as %s", got)
	}
	delete(encoded.Object, "apiVersion")
	delete(encoded.Object, "kind")
	back := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(encoded.Object, back); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(want, back) {
		t.Fatalf("a field is lost or changed:\nwant %+v\ngot  %+v", want, back)
	}
}

// Every field of an EvictionRequest of k8s.io/api passes through the library's type.
func TestRequestKeepsFields(t *testing.T) {
	t.Parallel()
	want, next := &lifecyclev1alpha1.EvictionRequest{}, int64(0)
	fillFields(reflect.ValueOf(want).Elem(), &next)
	ours, err := evictionapi.DecodeRequest(toUnstructured(t, want))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := evictionapi.EncodeRequest(ours)
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, want, encoded, "EvictionRequest")
}

// Every field of an Eviction of k8s.io/api passes through the library's type.
func TestEvictionKeepsFields(t *testing.T) {
	t.Parallel()
	want, next := &lifecyclev1alpha1.Eviction{}, int64(0)
	fillFields(reflect.ValueOf(want).Elem(), &next)
	ours, err := evictionapi.DecodeEviction(toUnstructured(t, want))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := evictionapi.EncodeEviction(ours)
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, want, encoded, "Eviction")
}

// The fields of a Pod that the API reads have the names that k8s.io/api gives them.
func TestPodFields(t *testing.T) {
	t.Parallel()
	priority, group := int32(10000), "gang"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}}
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "acme.io/foo", Priority: &priority}}
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	u := toUnstructured(t, pod)
	responders, err := evictionapi.PodResponders(u)
	if err != nil || len(responders) != 1 || responders[0].Name != "acme.io/foo" || *responders[0].Priority != priority {
		t.Errorf("responders: %+v, %v", responders, err)
	}
	if !evictionapi.HasSchedulingGroup(u) {
		t.Error("the group is not seen")
	}
}

// The constants are those of k8s.io/api.
func TestConstants(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[string]string{
		evictionapi.ImperativeEvictor:      lifecyclev1alpha1.EvictionResponderImperativeEviction,
		evictionapi.IntentEviction:         string(lifecyclev1alpha1.EvictionRequestIntentEviction),
		evictionapi.IntentWithdrawn:        string(lifecyclev1alpha1.RequesterIntentWithdrawn),
		evictionapi.StateInactive:          string(lifecyclev1alpha1.ResponderStateInactive),
		evictionapi.StateActive:            string(lifecyclev1alpha1.ResponderStateActive),
		evictionapi.StateInterrupted:       string(lifecyclev1alpha1.ResponderStateInterrupted),
		evictionapi.StateCanceled:          string(lifecyclev1alpha1.ResponderStateCanceled),
		evictionapi.StateCompleted:         string(lifecyclev1alpha1.ResponderStateCompleted),
		evictionapi.ConditionFailed:        string(lifecyclev1alpha1.EvictionConditionFailed),
		evictionapi.ConditionTargetEvicted: string(lifecyclev1alpha1.EvictionConditionTargetEvicted),
		evictionapi.ReasonAwaitingEviction: string(lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction),
		evictionapi.ReasonEvictionInvalid:  string(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid),
		evictionapi.ReasonCanceledDueToNoRequesters: string(
			lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters),
		evictionapi.ReasonSucceeded:          string(lifecyclev1alpha1.EvictionConditionReasonSucceeded),
		evictionapi.ReasonNoFurtherResponder: string(lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder),
		evictionapi.ReasonPodDeleted:         string(lifecyclev1alpha1.EvictionConditionReasonPodDeleted),
		evictionapi.ReasonPodTerminal:        string(lifecyclev1alpha1.EvictionConditionReasonPodTerminal),
		evictionapi.ReasonEvictionFailed:     string(lifecyclev1alpha1.EvictionConditionReasonEvictionFailed),
		evictionapi.RoleRequester:            string(lifecyclev1alpha1.EvictionParticipantRoleRequester),
		evictionapi.RoleResponder:            string(lifecyclev1alpha1.EvictionParticipantRoleResponder),
		evictionapi.RoleRequesterResponder:   string(lifecyclev1alpha1.EvictionParticipantRoleRequesterResponder),
		evictionapi.Version().String():       lifecyclev1alpha1.SchemeGroupVersion.String(),
	} {
		if ours != theirs {
			t.Errorf("%q is %q in k8s.io/api", ours, theirs)
		}
	}
}
