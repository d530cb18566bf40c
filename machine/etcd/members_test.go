// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/etcd"
	"github.com/belayproject/belay/machine/provider"
)

// cluster answers as etcd's gateway does.
type cluster struct {
	*httptest.Server
	members []etcd.Member
	sick    map[string]bool
	removed []string
	// answer, if set, answers instead.
	answer http.HandlerFunc
}

// newCluster has members of those names; "x?" is a learner, "x!" unhealthy.
func newCluster(t *testing.T, names string) *cluster {
	c := &cluster{sick: map[string]bool{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	for i, name := range strings.Fields(names) {
		is := strings.TrimRight(name, "!?")
		c.sick[is] = strings.Contains(name, "!")
		c.members = append(c.members, etcd.Member{
			ID: fmt.Sprint(10501334649042878790 + uint64(i)), Name: is, Learner: strings.Contains(name, "?"),
			PeerURLs: []string{"https://" + is + ".example.com:2380"}, ClientURLs: []string{c.URL + "/of/" + is},
		})
	}
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.answer != nil {
		c.answer(w, r)
		return
	}
	path := r.URL.Path
	if at, ok := strings.CutPrefix(path, "/of/"); ok {
		name, rest, _ := strings.Cut(at, "/")
		if path = "/" + rest; path == "/health" {
			_ = json.NewEncoder(w).Encode(map[string]string{"health": fmt.Sprint(!c.sick[name])})
			return
		}
	}
	switch path {
	case "/v3/cluster/member/list":
		_ = json.NewEncoder(w).Encode(map[string]any{"members": c.members})
	case "/v3/cluster/member/remove":
		var q struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&q)
		c.removed = append(c.removed, q.ID)
		_, _ = w.Write([]byte(`{}`))
	default:
		http.NotFound(w, r)
	}
}

func (c *cluster) client(t *testing.T) *etcd.Client {
	t.Helper()
	client, err := etcd.New(etcd.Options{Endpoints: []string{c.URL}, CallTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func host(name string) machine.Machine {
	m := machine.Machine{Key: machine.Key{Namespace: "fleet", Name: name}, UID: name}
	m.Spec.Roles = []string{"control-plane"}
	return m
}

// R-MA-23: who may leave, who may not, and who never was there.
func TestLeave(t *testing.T) {
	worker := host("c0")
	worker.Spec.Roles = []string{"worker"}
	byNode, byAddress := host("x"), host("y")
	byNode.Node = &machine.NodeRef{Name: "c0"}
	byAddress.Instance = &provider.Instance{Addresses: []provider.Address{{Type: "DNS", Address: "c0.example.com"}}}
	for _, c := range []struct {
		name, members string
		m             machine.Machine
		removes       bool
		blocked       string
	}{
		{"one of three", "c0 c1 c2", host("c0"), true, ""},
		{"one of two", "c0 c1", host("c0"), true, ""},
		{"the last", "c0", host("c0"), false, "is the last one"},
		{"an unhealthy one", "c0! c1 c2", host("c0"), true, ""},
		{"a healthy one beside an unhealthy one", "c0 c1! c2", host("c0"), false, "1 of 2 members would be healthy, 2 have to be"},
		{"one of five beside an unhealthy one", "c0 c1! c2 c3 c4", host("c0"), true, ""},
		{"one of five beside two unhealthy ones", "c0 c1! c2! c3 c4", host("c0"), false, "2 of 4"},
		{"learners have no vote", "c0 c1 c2?!", host("c0"), true, ""},
		{"a learner", "c0! c1! c2?", host("c2"), true, ""},
		{"who never was a member", "c1 c2", host("c0"), false, ""},
		{"a worker of that name", "c0 c1 c2", worker, false, ""},
		{"by the name of its Node", "c0 c1 c2", byNode, true, ""},
		{"by its address", "c0 c1 c2", byAddress, true, ""},
		{"of two", "c0 c0 c2", host("c0"), false, "more than one member"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newCluster(t, c.members)
			done, blocked, err := s.client(t).Leave(t.Context(), c.m)
			if err != nil || done != (c.blocked == "") || !strings.Contains(blocked, c.blocked) || (blocked == "") != (c.blocked == "") {
				t.Errorf("R-MA-23: done %t, blocked %q, %v, want %q", done, blocked, err, c.blocked)
			}
			if (len(s.removed) == 1) != c.removes {
				t.Errorf("R-MA-23: removed %v, want one: %t", s.removed, c.removes)
			}
		})
	}
}

// R-MA-25: members are listed with their machines and their health.
func TestList(t *testing.T) {
	s := newCluster(t, "c0 c1! c2? other")
	got, err := s.client(t).List(t.Context(), []machine.Machine{host("c0"), host("c1"), host("c2")})
	want := fmt.Sprint([]machine.Member{
		{Name: "c0", Machine: host("c0").Key, Healthy: true}, {Name: "c1", Machine: host("c1").Key},
		{Name: "c2", Machine: host("c2").Key, Healthy: true, Learner: true}, {Name: "other", Healthy: true},
	})
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	worker := host("w0")
	worker.Spec.Roles, worker.Node = []string{"worker"}, &machine.NodeRef{Name: "c0"}
	if got, err = s.client(t).List(t.Context(), []machine.Machine{host("c0"), worker}); err != nil || got[0].Machine != host("c0").Key {
		t.Errorf("a member beside a worker of its name is of %v, %v", got[0].Machine, err)
	}
	twice := host("again")
	twice.Node = &machine.NodeRef{Name: "c0"}
	if got, err = s.client(t).List(t.Context(), []machine.Machine{host("c0"), twice}); err != nil || got[0].Machine != (machine.Key{}) {
		t.Errorf("a member of two machines is of %v, %v", got[0].Machine, err)
	}
}

// What a server says wrongly is an error that names it; a member that somebody else has removed meanwhile is gone.
func TestAnswers(t *testing.T) {
	for body, want := range map[string]string{"nonsense": "no JSON as of etcd", "{}": "the answer has none", `{"members":1}`: "no JSON as of etcd"} {
		s := newCluster(t, "c0")
		s.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
		if _, _, err := s.client(t).Leave(t.Context(), host("c0")); err == nil || !strings.Contains(err.Error(), want) || body != "{}" && !strings.Contains(err.Error(), s.URL) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	for status, want := range map[int]string{http.StatusFound: "status 302", http.StatusForbidden: `status 403: "permission denied"`} {
		s := newCluster(t, "c0")
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"code":7,"message":"permission denied"}`))
		}
		if _, err := s.client(t).List(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("status %d: %v, want %q", status, err, want)
		}
	}
	s := newCluster(t, "c0 c1 c2")
	list := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/remove") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"code":5,"message":"etcdserver: member not found"}`))
			return
		}
		list.ServeHTTP(w, r)
	})
	if done, blocked, err := s.client(t).Leave(t.Context(), host("c0")); !done || err != nil {
		t.Errorf("of a member that is gone: %t, %q, %v", done, blocked, err)
	}
	for _, o := range []etcd.Options{{}, {Endpoints: []string{"10.0.0.1:2379"}}, {Endpoints: []string{"ftp://a"}}} {
		if _, err := etcd.New(o); err == nil || !strings.Contains(err.Error(), "Endpoints") {
			t.Errorf("options %+v: %v", o, err)
		}
	}
}
