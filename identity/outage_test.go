// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/testenv"
)

// TestKilledProcessesKeepOneLease is R-ID-06 and R-ID-07 with processes that get a kill -9: twenty restarts, one Lease of one UID, and a holder for
// each.
func TestKilledProcessesKeepOneLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.lock = filepath.Join(t.TempDir(), "lock")
	p := c.spawn(shared.Env(t), fast())
	holders := map[string]bool{p.holds(): true}
	first := c.get(name)
	for i := range int32(20) {
		if _, err := p.ends(syscall.SIGKILL); err == nil {
			t.Fatal("a process that was killed has ended well")
		}
		p = c.spawn(shared.Env(t), fast())
		holder := p.holds()
		l := c.get(name)
		if l.UID != first.UID || *l.Spec.HolderIdentity != holder || *l.Spec.LeaseTransitions != i+1 || !first.Spec.AcquireTime.Before(l.Spec.AcquireTime) {
			t.Fatalf("restart %d as %q: the Lease was %v, is %v", i+1, holder, first, l)
		}
		holders[holder] = true
	}
	if len(holders) != 21 {
		t.Errorf("R-ID-06: %d holders of 21 processes", len(holders))
	}
	if all, err := c.leases().List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 {
		t.Errorf("R-ID-07: %d Leases, %v; want 1", len(all.Items), err)
	}
	if took, err := p.ends(syscall.SIGTERM); err != nil || took > fast().Stop {
		t.Errorf("R-ID-16: after SIGTERM the process ended within %v with %v, want it well within %v", took, err, fast().Stop)
	}
}

// outageVariable, if set, is how long the API server stays away after the hold is lost, as in "5m".
const outageVariable = "BELAY_IDENTITY_OUTAGE"

// outage is longer than it takes the back-off to grow to its most of 7 s.
func outage(t *testing.T) time.Duration {
	text := os.Getenv(outageVariable)
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", outageVariable, err)
	}
	return d
}

// TestOutageOfTheAPIServer stops the API server for longer than a hold. R-ID-15: the process lives, says that it is not well, and holds its Lease
// again within a renewal and 7 s of the return. R-ID-16: SIGTERM meanwhile ends a process within Stop.
func TestOutageOfTheAPIServer(t *testing.T) {
	t.Parallel()
	env := testenv.Start(t, testenv.Options{})
	c := clusterOn(t, env, "get", "create", "update", "delete")
	timing := identity.Timing{ // a request may take as long as a renewal: with less, one that is slow after the return would use up the time for the whole
		Renew: 3 * time.Second, Hold: 9 * time.Second, Liveness: 10 * time.Second, Duration: 10 * time.Second, Stop: 4 * time.Second,
	}
	spec := goodSpec("other")
	spec.Name, spec.Timing = "other", timing
	p, stopped := c.start(spec), c.spawn(env, timing)
	before := p.holds()
	stopped.holds()
	if err := env.APIServer().Kill(); err != nil {
		t.Fatal(err)
	}
	if took, err := stopped.ends(syscall.SIGTERM); err != nil || took > timing.Stop+time.Second {
		t.Errorf("R-ID-16: while the server was down, SIGTERM ended the process after %v with %v; want nil within %v", took, err, timing.Stop)
	}
	c.eventually(func() string {
		if _, held := p.member.Epoch(); held || p.member.Healthy() == nil {
			return "the Lease is held"
		}
		return ""
	})
	select {
	case err := <-p.done:
		t.Fatalf("R-ID-15: Run has ended with %v", err)
	case <-time.After(outage(t)):
	}
	if err := env.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	again := p.holds()
	took, most := time.Since(began), timing.Renew+7*time.Second
	if took > most {
		t.Errorf("R-ID-15: held again after %v, want %v at most", took, most)
	}
	t.Logf("away for %v after the loss, held again %v after the return", outage(t), took)
	if again.UID != before.UID || again.Number <= before.Number || p.member.Healthy() != nil {
		t.Errorf("R-ID-15: holds %v after %v, healthy %v; want the same Lease, a greater number, nil", again, before, p.member.Healthy())
	}
}

// TestOnlyLeasesAreAskedFor is R-ID-02: in the audit log of a member that loses its Lease and gets it again, a view and a collector that deletes
// one, from the start to the stop, there are Leases and nothing else.
func TestOnlyLeasesAreAskedFor(t *testing.T) {
	t.Parallel()
	env := shared.Env(t)
	c := clusterOn(t, env, "get", "create", "update", "delete", "list", "watch")
	p := c.start(goodSpec("h"))
	before := p.holds()
	s := onAServer(t)
	leases := kubernetes.NewForConfigOrDie(c.member).CoordinationV1().Leases(c.namespace)
	s.watch(leases, p.member)
	s.put(c.namespace, "dead", "agent")
	collector, err := identity.NewCollector(leases, s.view, identity.CollectorConfig{GCAfter: 2 * realLiveness, Period: time.Second})
	s.must(err)
	s.run("collector", collector.Run)
	s.must(c.leases().Delete(t.Context(), name, metav1.DeleteOptions{}))
	c.eventually(func() string {
		if e, held := p.member.Epoch(); !held || e.UID == before.UID {
			return "the member has not got a Lease again"
		}
		if _, err := c.leases().Get(t.Context(), "dead", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the dead Lease is not collected: %v", err)
		}
		return ""
	})
	s.cancel()
	p.cancel()
	<-p.done
	want := []string{}
	for _, verb := range []string{"create", "delete", "get", "update", "watch"} { // client-go lists by a watch, or by a list
		want = append(want, verb+" coordination.k8s.io/v1/leases")
	}
	c.eventually(func() string { // a watch is logged at its end
		got := slices.DeleteFunc(auditOf(t, env, "member-"+c.namespace), func(what string) bool {
			return what == "list coordination.k8s.io/v1/leases"
		})
		if !slices.Equal(got, want) {
			return fmt.Sprintf("R-ID-02: in the audit log are %q, want %q", got, want)
		}
		return ""
	})
}

// auditOf returns what a user has asked for, as "get group/version/resource", each once.
func auditOf(t *testing.T, env *testenv.Env, user string) []string {
	t.Helper()
	log, err := os.Open(env.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var found []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ObjectRef        *struct{ APIGroup, APIVersion, Resource string }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != user {
			continue // half a line, or somebody else
		}
		what := e.Verb + " " + e.RequestURI
		if o := e.ObjectRef; o != nil {
			what = fmt.Sprintf("%s %s/%s/%s", e.Verb, o.APIGroup, o.APIVersion, o.Resource)
		}
		if !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}
