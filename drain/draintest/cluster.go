// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// Options are those of a [Cluster]. The zero value is a cluster whose controllers and cache are never late and whose pods end, start
// and become ready at once.
type Options struct {
	// Now is the clock; nil means time.Now. Timers are those of package time, so it has to run at their speed.
	Now func() time.Time
	// CacheLag is how long after a write the cache shows it.
	CacheLag time.Duration
	// BudgetLag is how long after a change the disruption controller writes a budget's status, ControllerLag the same for all other
	// controllers and the scheduler.
	BudgetLag     time.Duration
	ControllerLag time.Duration
	// Latency is how long a request is under way before the server acts on it.
	Latency time.Duration
	// Termination is how long pods take to end, never longer than their grace period. [TerminationAnnotation] is the same for one pod.
	Termination time.Duration
	// Startup is how long a new pod is Pending on its node, Readiness how long it then runs before it is ready. [ReadinessAnnotation]
	// is the second for one pod.
	Startup   time.Duration
	Readiness time.Duration
	// NoKubelets leaves what kubelets do to the test: see [Cluster.SetPhase], [Cluster.SetReady] and [Cluster.Finish].
	NoKubelets bool
}

// A Cluster is a Kubernetes cluster in memory, as far as a drain sees it. It is all the parts that a Drainer needs: [drain.Cache],
// [drain.VolumeCache], [drain.OwnerCache], [drain.Client] and [drain.LeaseKeeper]. Make one with [New] or [Start].
//
// All methods may be called from several goroutines. What is due is done before any of them answers; [Cluster.Run] does it when
// nobody asks, and tells the watchers. Objects that are returned are shared and must not be changed.
type Cluster struct {
	*Script

	o    Options
	poke chan struct{}

	mu      sync.Mutex
	at      time.Time // the time of the event under way, else zero
	agenda  agenda
	queued  map[string]time.Time
	version int64
	uids    int64

	nodes       table[string, *corev1.Node]
	pods        table[types.NamespacedName, *corev1.Pod]
	budgets     table[types.NamespacedName, *policyv1.PodDisruptionBudget]
	attachments table[string, *storagev1.VolumeAttachment]
	claims      table[types.NamespacedName, *corev1.PersistentVolumeClaim]
	volumes     table[string, *corev1.PersistentVolume]
	workloads   map[types.UID]*workload
	terminating map[string]bool // namespaces
	kubelets    map[string]*kubelet
	ends        map[types.UID]time.Time // when the kubelet is done with a pod

	budgetsPaused bool
	epoch         int // of the watch; an event of another one is not delivered
	watchDown     bool
	cacheFailure  error
	watchers      map[int]func(drain.Change)
	nextWatcher   int
	news          []drain.Change
}

var (
	_ drain.Cache       = (*Cluster)(nil)
	_ drain.VolumeCache = (*Cluster)(nil)
	_ drain.OwnerCache  = (*Cluster)(nil)
	_ drain.Client      = (*Cluster)(nil)
	_ drain.LeaseKeeper = (*Cluster)(nil)
)

// New returns an empty cluster. Nothing happens by itself in it until [Cluster.Run] is called.
func New(o Options) *Cluster {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Cluster{
		Script:      &Script{now: o.Now, latency: o.Latency},
		o:           o,
		poke:        make(chan struct{}, 1),
		version:     1000, // like a server that others have written to before
		queued:      map[string]time.Time{},
		workloads:   map[types.UID]*workload{},
		terminating: map[string]bool{},
		kubelets:    map[string]*kubelet{},
		ends:        map[types.UID]time.Time{},
		watchers:    map[int]func(drain.Change){},
	}
	c.drop = c.DropWatch
	return c
}

// Start returns an empty cluster that runs until the test, or its bubble of testing/synctest, ends.
func Start(t testing.TB, o Options) *Cluster {
	c := New(o)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return c
}

// Run lets controllers, kubelets and the cache act at their times, and calls the watchers, until ctx ends. It starts no goroutine.
func (c *Cluster) Run(ctx context.Context) {
	for {
		news, watchers, wait := c.turn()
		for _, change := range news {
			for _, changed := range watchers {
				changed(change)
			}
		}
		if len(news) > 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.poke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// turn does what is due and returns what watchers have to be told and how long nothing will be due.
func (c *Cluster) turn() ([]drain.Change, []func(drain.Change), time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	news := c.news
	c.news = nil
	watchers := make([]func(drain.Change), 0, len(c.watchers))
	for id := range c.nextWatcher {
		if w := c.watchers[id]; w != nil {
			watchers = append(watchers, w)
		}
	}
	wait := 24 * time.Hour
	if len(c.agenda) > 0 {
		wait = min(wait, c.agenda[0].due.Sub(c.o.Now()))
	}
	return news, watchers, wait
}

// lock takes the cluster for the caller, with everything done that is due.
func (c *Cluster) lock() {
	c.mu.Lock()
	c.advance()
}

// unlock does what the caller has made due at once, and gives the cluster back.
func (c *Cluster) unlock() {
	c.advance()
	c.mu.Unlock()
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// now is the time of the event under way, or else the clock's.
func (c *Cluster) now() time.Time {
	if c.at.IsZero() {
		return c.o.Now()
	}
	return c.at
}

func (c *Cluster) newUID(kind string) types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("%s-%04d", kind, c.uids))
}
