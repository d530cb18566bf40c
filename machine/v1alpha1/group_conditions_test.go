// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-16, R-MA-11: conditions of sets and deployments say what their numbers say; a stockout is one of them.
func TestGroupConditions(t *testing.T) {
	good := machine.Set{Spec: machine.SetSpec{Replicas: 2}, Status: machine.SetStatus{Replicas: 2, Ready: 2, Observed: 5}}
	fine := map[string]string{"Ready": "True AllReady", "Healthy": "True Healthy", "Paused": "False NotPaused", "Valid": "True Valid"}
	for _, c := range []struct {
		name   string
		change func(s *machine.Set)
		want   map[string]string
	}{
		{"all there", func(*machine.Set) {}, nil},
		{"one not ready", func(s *machine.Set) { s.Status.Ready = 1 }, map[string]string{"Ready": "False NotReady: 2 of 2 machines are there, 1 of them ready"}},
		{"one too many", func(s *machine.Set) { s.Status.Replicas, s.Status.Ready = 3, 3 },
			map[string]string{"Ready": "False NotReady: 3 of 2 machines are there, 3 of them ready"}},
		{"stockout", func(s *machine.Set) { s.Status.Failure = &machine.Failure{Reason: "Stockout", Message: "no room"} },
			map[string]string{"Healthy": "False Stockout: no room"}},
		{"paused", func(s *machine.Set) { s.Spec.Paused, s.Status.Message = true, "paused by spec.paused" },
			map[string]string{"Paused": "True Paused: paused by spec.paused"}},
	} {
		in := good
		c.change(&in)
		want := map[string]string{"UpToDate": "True UpToDate"}
		for _, from := range []map[string]string{fine, c.want} {
			for kind, text := range from {
				want[kind] = text
			}
		}
		d := &v1alpha1.MachineDeployment{}
		d.SetStatus(machine.Deployment{
			Spec: machine.DeploymentSpec{Replicas: in.Spec.Replicas, Paused: in.Spec.Paused},
			Status: machine.DeploymentStatus{
				Replicas: in.Status.Replicas, Updated: in.Status.Replicas, Ready: in.Status.Ready, Failure: in.Status.Failure, Message: in.Status.Message, Observed: 5,
			},
		}, now())
		if diff := cmp.Diff(want, said(d.Status.Conditions)); diff != "" {
			t.Errorf("%s: a deployment has conditions (-want +got):\n%s", c.name, diff)
		}
		s := &v1alpha1.MachineSet{}
		s.SetStatus(in, now())
		delete(want, "UpToDate")
		if diff := cmp.Diff(want, said(s.Status.Conditions)); diff != "" || s.Status.Conditions[0].ObservedGeneration != 5 {
			t.Errorf("%s: a set has conditions of generation %d (-want +got):\n%s", c.name, s.Status.Conditions[0].ObservedGeneration, diff)
		}
	}
}

// A deployment is up to date when all of its machines are of the present template, and as many as are wanted.
func TestDeploymentIsUpToDate(t *testing.T) {
	for _, c := range []struct {
		wanted, there, updated int
		want                   string
	}{
		{2, 2, 2, "True UpToDate"},
		{2, 3, 2, "False Rolling: 2 of 3 machines are of the present template"},
		{2, 1, 1, "False Rolling: 1 of 2 machines are of the present template"},
		{0, 0, 0, "True UpToDate"},
	} {
		d := &v1alpha1.MachineDeployment{}
		d.SetStatus(machine.Deployment{
			Spec: machine.DeploymentSpec{Replicas: c.wanted}, Status: machine.DeploymentStatus{Replicas: c.there, Updated: c.updated},
		}, now())
		if got := said(d.Status.Conditions)["UpToDate"]; got != c.want {
			t.Errorf("%+v: got %q, want %q", c, got, c.want)
		}
	}
}

// A health check says how many machines are unhealthy, and whether something keeps it from doing anything about that.
func TestHealthCheckConditions(t *testing.T) {
	for _, c := range []struct {
		name string
		in   machine.HealthCheck
		want map[string]string
	}{
		{"healthy", machine.HealthCheck{}, map[string]string{"Healthy": "True Healthy", "RemediationAllowed": "True Allowed", "Paused": "False NotPaused"}},
		{"too many", machine.HealthCheck{Status: machine.HealthStatus{Expected: 4, Unhealthy: 3, Message: "3 of 4"}}, map[string]string{
			"Healthy": "False Unhealthy: 3 of 4 machines are unhealthy", "RemediationAllowed": "False Held: 3 of 4", "Paused": "False NotPaused",
		}},
		{"paused", machine.HealthCheck{Spec: machine.HealthSpec{Paused: true}}, map[string]string{
			"Healthy": "True Healthy", "RemediationAllowed": "False Held", "Paused": "True Paused",
		}},
	} {
		c.want["Valid"] = "True Valid"
		if diff := cmp.Diff(c.want, said(checkOf(t, c.in).Status.Conditions)); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", c.name, diff)
		}
	}
}

// The same status written again is the same, and one that can't be understood says so and keeps the rest.
func TestGroupStatusIsStable(t *testing.T) {
	later := now().Add(time.Hour)
	s, d, h := setOf(t, machine.Set{}), deploymentOf(t, machine.Deployment{}), checkOf(t, machine.HealthCheck{})
	s2, d2, h2 := s.DeepCopy(), d.DeepCopy(), h.DeepCopy()
	s2.SetStatus(machine.Set{}, later)
	d2.SetStatus(machine.Deployment{}, later)
	h2.SetStatus(machine.HealthCheck{}, later)
	same(t, s, s2, nil)
	same(t, d, d2, nil)
	same(t, h, h2, nil)
	s3, d3, h3 := *s2, *d2, *h2
	for _, o := range []interface {
		SetInvalid(err error, now time.Time)
	}{s2, d2, h2} {
		o.SetInvalid(errors.New("no"), later)
	}
	for _, conditions := range [][]metav1.Condition{s2.Status.Conditions, d2.Status.Conditions, h2.Status.Conditions} {
		if got := said(conditions); got["Valid"] != "False Invalid: no" || got["Healthy"] != "True Healthy" {
			t.Errorf("got conditions %v, want Valid alone to have changed", got)
		}
	}
	same(t, *s, s3, nil)
	same(t, *d, d3, nil)
	same(t, *h, h3, nil)
}
