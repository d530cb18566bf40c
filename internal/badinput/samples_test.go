// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/fields"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/signed"
	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/badinput"
	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/machine/etcd"
	"github.com/belayproject/belay/machine/file"
	"github.com/belayproject/belay/machine/provider/exec"
	"github.com/belayproject/belay/machine/provider/local"
	"github.com/belayproject/belay/machine/provider/ssh"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// addSample adds how a value of type T is made.
func addSample[T any](to map[reflect.Type]func(*badinput.Scope) any, f func(*badinput.Scope) T) {
	to[reflect.TypeFor[T]()] = func(s *badinput.Scope) any { return f(s) }
}

// librarySamples are the values that can be neither filled nor constructed.
func librarySamples() map[reflect.Type]func(*badinput.Scope) any {
	to := map[reflect.Type]func(*badinput.Scope) any{}
	addForeign(to)
	addInformers(to)
	addStores(to)
	addOptions(to)
	addNodeOptions(to)
	return to
}

// addForeign adds values of other modules. Their API server refuses connections.
func addForeign(to map[reflect.Type]func(*badinput.Scope) any) {
	addSample(to, func(*badinput.Scope) *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} })
	addSample(to, func(*badinput.Scope) kubernetes.Interface { return kubefake.NewClientset(newNode()) })
	addSample(to, func(s *badinput.Scope) discovery.DiscoveryInterface {
		return discovery.NewDiscoveryClientForConfigOrDie(badinput.MakeSample[*rest.Config](s))
	})
	addSample(to, func(s *badinput.Scope) dynamic.Interface {
		client, err := dynamic.NewForConfig(badinput.MakeSample[*rest.Config](s))
		if err != nil {
			panic(err)
		}
		return client
	})
	addSample(to, func(*badinput.Scope) cache.ResourceEventHandler { return cache.ResourceEventHandlerFuncs{} })
	addSample(to, func(*badinput.Scope) cache.ResourceEventHandlerRegistration { return registration{} })
	addSample(to, func(*badinput.Scope) watch.Interface { return watch.NewEmptyWatch() })
	addSample(to, func(*badinput.Scope) labels.Selector { return labels.Everything() })
	addSample(to, func(*badinput.Scope) runtime.Object { return newNode() })
	addSample(to, func(*badinput.Scope) *corev1.Node { return newNode() })
	addSample(to, func(*badinput.Scope) *runtime.Scheme { return runtime.NewScheme() })
	addSample(to, func(*badinput.Scope) *http.Client { return &http.Client{} })
	addSample(to, func(*badinput.Scope) http.ResponseWriter { return httptest.NewRecorder() })
	addSample(to, func(*badinput.Scope) *http.Request {
		return httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	})
	addSample(to, func(*badinput.Scope) io.Reader { return strings.NewReader("a") })
	addSample(to, func(*badinput.Scope) io.Writer { return io.Discard })
}

// addInformers adds informers that run, of a cluster with one Node.
func addInformers(to map[reflect.Type]func(*badinput.Scope) any) {
	addSample(to, func(s *badinput.Scope) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactory(badinput.MakeSample[kubernetes.Interface](s), 0)
	})
	addSample(to, func(s *badinput.Scope) cache.SharedIndexInformer {
		return runInformer(s, badinput.MakeSample[informers.SharedInformerFactory](s).Core().V1().Nodes().Informer())
	})
	addSample(to, func(s *badinput.Scope) identity.Source {
		return runInformer(s, badinput.MakeSample[informers.SharedInformerFactory](s).Coordination().V1().Leases().Informer())
	})
	addSample(to, func(s *badinput.Scope) informer.Interface { return badinput.MakeSample[cache.SharedIndexInformer](s) })
	addSample(to, func(s *badinput.Scope) drainkube.Informers {
		return runAll(s, badinput.MakeSample[kubernetes.Interface](s))
	})
	addSample(to, func(s *badinput.Scope) rolloutkube.Informers {
		f := badinput.MakeSample[informers.SharedInformerFactory](s)
		return rolloutkube.FactoryInformers(f)
	})
}

// addStores adds stores in memory and on disk.
func addStores(to map[reflect.Type]func(*badinput.Scope) any) {
	addSample(to, func(s *badinput.Scope) configsync.Store { return newMemory(s) })
	addSample(to, func(s *badinput.Scope) lkg.Store { return newMemory(s) })
	addSample(to, func(s *badinput.Scope) lkg.Getter { return newMemory(s) })
	addSample(to, func(s *badinput.Scope) nodeagent.Disk { return newMemory(s) })
	addSample(to, func(s *badinput.Scope) *checkpoint.Store {
		store, err := checkpoint.Open(newDir(s), checkpoint.Options{})
		return closeAfter(s, store, err)
	})
	addSample(to, func(s *badinput.Scope) *checkpoint.Reader {
		dir := newDir(s)
		store, err := checkpoint.Open(dir, checkpoint.Options{})
		if err = errors.Join(err, store.Close()); err != nil {
			panic(err)
		}
		reader, err := checkpoint.OpenReader(dir, checkpoint.Options{})
		return noError(reader, err)
	})
	addSample(to, func(s *badinput.Scope) *checkpoint.FileSet {
		set, err := checkpoint.OpenFileSet(context.WithoutCancel(s.Context), newDir(s), checkpoint.Options{})
		return noError(set, err)
	})
	addSample(to, func(s *badinput.Scope) *file.Store {
		store, err := file.Open(newDir(s))
		return closeAfter(s, store, err)
	})
	addSample(to, func(s *badinput.Scope) *local.Provider {
		p, err := local.New(context.WithoutCancel(s.Context), local.Options{Root: newDir(s)})
		return closeAfter(s, p, err)
	})
}

// addOptions adds options that are valid as a whole.
func addOptions(to map[reflect.Type]func(*badinput.Scope) any) {
	addSample(to, func(*badinput.Scope) drainkube.CacheOptions { return drainkube.CacheOptions{} })
	addSample(to, func(*badinput.Scope) drainkube.ClientOptions { return drainkube.ClientOptions{} })
	addSample(to, func(s *badinput.Scope) drainkube.OpenOptions {
		return drainkube.OpenOptions{Informers: badinput.MakeSample[drainkube.Informers](s), HTTP: &http.Client{}}
	})
	addSample(to, func(s *badinput.Scope) *drainkube.Drainer {
		o := drainkube.OpenOptions{Informers: noNodes(s)}
		d, err := drainkube.Open(context.WithoutCancel(s.Context), emptyCluster(s), o)
		noError(d, err)
		s.AddCleanup(d.Close)
		return d
	})
	addSample(to, func(s *badinput.Scope) drainkube.Client {
		return noError(drainkube.NewClientForConfig(badinput.MakeSample[*rest.Config](s), nil, drainkube.ClientOptions{}))
	})
	addSample(to, func(s *badinput.Scope) kubelet.ProverOptions {
		return kubelet.ProverOptions{Program: "/nonexistent/kubelet", Dir: newDir(s)}
	})
	addSample(to, func(*badinput.Scope) configsync.Codec[*kubelet.Config] { return kubelet.Codec(kubelet.CodecOptions{}) })
	addSample(to, func(*badinput.Scope) identity.CollectorConfig { return identity.CollectorConfig{} })
	addSample(to, func(s *badinput.Scope) *configsync.Steered[string] {
		o := configsync.Options[string]{
			Version: "a", Key: "a", Default: func() string { return "a" },
			Codec: badinput.MakeSample[configsync.Codec[string]](s),
			Store: newMemory(s), Fetcher: badinput.MakeSample[configsync.Fetcher](s),
			Restarter: badinput.MakeSample[configsync.Restarter](s),
		}
		return noError(configsync.NewSteered(s.Context, o, badinput.MakeSample[configsync.Finder](s)))
	})
	addSample(to, func(*badinput.Scope) drain.Request { return drain.Request{Node: "a", Holder: "a", Mode: drain.Drain} })
	addSample(to, func(*badinput.Scope) drain.Set { // one that is not released by Run for a minute after its context
		return drain.Set{Request: drain.Request{Holder: "a", Mode: drain.Release}, Groups: [][]string{{"a"}}}
	})
	addSample(to, func(*badinput.Scope) drain.Policy { return drain.Policy{} })
	addSample(to, func(*badinput.Scope) drain.SchedulerOptions { return drain.SchedulerOptions{Now: time.Now} })
	addSample(to, func(s *badinput.Scope) identity.ViewConfig {
		return identity.ViewConfig{
			Source: badinput.MakeSample[identity.Source](s), Canary: canary{}, Clock: identity.SystemClock(),
		}
	})
	addSample(to, func(*badinput.Scope) identity.Canary { return canary{} })
	addSample(to, func(*badinput.Scope) identity.Clock { return identity.SystemClock() })
	addSample(to, func(*badinput.Scope) identity.Spec {
		return identity.Spec{
			Namespace: "a", Name: "a", Component: "a", Host: "a", Fingerprint: identity.Fingerprint{BootID: "a"},
		}
	})
	addSample(to, func(*badinput.Scope) identity.LeadOptions {
		return identity.LeadOptions{Namespace: "a", Name: "a", HTTP: &http.Client{}}
	})
}

// addNodeOptions adds the options of what runs on a node, and of providers.
func addNodeOptions(to map[reflect.Type]func(*badinput.Scope) any) {
	addSample(to, func(*badinput.Scope) ssh.Options {
		return ssh.Options{Hosts: []ssh.Host{{Name: "a", Address: "127.0.0.1"}}, Command: "/bin/false"}
	})
	addSample(to, func(s *badinput.Scope) exec.Options {
		program := filepath.Join(s.Dir, "provider")
		script := "#!/bin/sh\necho '{\"protocol\":1,\"abilities\":[\"create\",\"delete\",\"get\",\"list\"]}'\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			panic(err)
		}
		return exec.Options{Path: program}
	})
	addSample(to, func(*badinput.Scope) etcd.Options { return etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}} })
	addSample(to, func(s *badinput.Scope) nodeagent.Options {
		return nodeagent.Options{
			Shadows: badinput.MakeSample[nodeagent.Shadows](s), Disk: newMemory(s),
			Updater: badinput.MakeSample[nodeagent.Updater](s),
			NodeUID: func(context.Context) (string, error) { return "a", nil }, Changed: make(chan struct{}),
		}
	})
	addSample(to, func(*badinput.Scope) signed.Keys {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		return noError(signed.NewKeys(map[string]ed25519.PublicKey{"a": public}))
	})
	addSample(to, func(*badinput.Scope) *fields.Policy { return noError(fields.New(fields.Restart, nil)) })
}

// emptyCluster is an API server that has nothing, and keeps watches open.
func emptyCluster(s *badinput.Scope) *rest.Config {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		kinds := map[string]string{"pods": "PodList", "nodes": "NodeList", "poddisruptionbudgets": "PodDisruptionBudgetList"}
		version := "v1"
		if strings.Contains(r.URL.Path, "policy") {
			version = "policy/v1"
		}
		kind := kinds[path.Base(r.URL.Path)]
		if kind == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, version, kind)
	}))
	s.AddCleanup(server.Close)
	s.AddCleanup(server.CloseClientConnections)
	return &rest.Config{Host: server.URL}
}

// noNodes are the informers of a cluster that has nothing.
func noNodes(s *badinput.Scope) drainkube.Informers { return runAll(s, kubefake.NewClientset()) }

func runAll(s *badinput.Scope, client kubernetes.Interface) drainkube.Informers {
	f := informers.NewSharedInformerFactory(client, 0)
	return drainkube.Informers{
		Nodes:   runInformer(s, f.Core().V1().Nodes().Informer()),
		Pods:    runInformer(s, f.Core().V1().Pods().Informer()),
		Budgets: runInformer(s, f.Policy().V1().PodDisruptionBudgets().Informer()),
	}
}

func runInformer(s *badinput.Scope, inf cache.SharedIndexInformer) cache.SharedIndexInformer {
	ctx, cancel := context.WithCancel(context.Background())
	s.AddCleanup(cancel)
	go inf.Run(ctx.Done())
	cache.WaitForCacheSync(s.Context.Done(), inf.HasSynced)
	return inf
}

type canary struct{}

func (canary) Key() types.NamespacedName { return types.NamespacedName{Namespace: "a", Name: "a"} }

func (canary) Written(string) (time.Duration, bool) { return 0, false }

func noError[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// closeAfter has a value closed at the end of the call.
func closeAfter[T io.Closer](s *badinput.Scope, value T, err error) T {
	noError(value, err)
	s.AddCleanup(func() { _ = value.Close() })
	return value
}

// newDir returns a directory that is not there yet.
func newDir(s *badinput.Scope) string {
	dir := noError(os.MkdirTemp(s.Dir, ""))
	return filepath.Join(dir, "new")
}

func newNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}} }

// registration has the interface of each release of client-go; its other methods are not called.
type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

// A memory is a store of records.
type memory struct {
	mu      sync.Mutex
	records map[string][]byte
}

func (m *memory) Get(_ context.Context, stream string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if payload, ok := m.records[stream]; ok {
		return payload, nil
	}
	return nil, fs.ErrNotExist
}

func (m *memory) Put(_ context.Context, stream string, payload []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[stream] = payload
	return nil
}

func (m *memory) Delete(_ context.Context, stream string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, stream)
	return nil
}

func (m *memory) List(_ context.Context, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var streams []string
	for stream := range m.records {
		if strings.HasPrefix(stream, prefix) {
			streams = append(streams, stream)
		}
	}
	return streams, nil
}

func newMemory(*badinput.Scope) *memory { return &memory{records: map[string][]byte{}} }
