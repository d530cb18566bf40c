// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider/local"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// limit bounds each wait for something that has to happen. It is no measure of how long that takes.
const limit = 3 * time.Minute

// A stage is a control plane with the controllers of machines, on a host that may have one Node.
type stage struct {
	t         *testing.T
	env       *testenv.Env
	namespace string
	core      kubernetes.Interface
	machines  dynamic.ResourceInterface
	provider  *local.Provider
	root      string
	words     map[string]string // of testdata/machine.yaml
	history   *history
	before    string // the places, while no other kubelet runs here
}

func newStage(t *testing.T) *stage {
	t.Helper()
	nodetier.Require(t) // before anything is started
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler},
		Args: map[testenv.Component][]string{testenv.APIServer: {"--enable-bootstrap-token-auth"}},
	})
	s := &stage{t: t, env: env, namespace: env.Namespace(t), core: kubernetes.NewForConfigOrDie(env.Config()), root: filepath.Join(env.Dir(), "machines")}
	s.must(nodetier.Reserve(t.Context(), env))
	s.before = places(t)
	s.must(env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	objects := dynamic.NewForConfigOrDie(env.Config())
	s.machines = objects.Resource(v1alpha1.MachinesResource).Namespace(s.namespace)
	s.words = s.fill()
	s.mayJoin()
	s.history = watch(t, s.core, s.machines)
	s.control(objects)
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// fill makes the repository of programs, and the words for the Machine.
func (s *stage) fill() map[string]string {
	s.t.Helper()
	built, err := binaries.Ensure(s.t.Context(), os.Stderr, binaries.Kubelet, binaries.OldKubelet, binaries.Containerd, binaries.ContainerdShim, binaries.Pause)
	s.must(err)
	words := map[string]string{
		"NAMESPACE": s.namespace, "REPOSITORY": filepath.Join(s.env.Dir(), "repository"), "CGROUP": "/belay-" + s.env.ID(), "PAUSE": nodetier.PauseImage,
		"PLATFORM": "linux/" + runtime.GOARCH,
	}
	for word, name := range map[string]binaries.Name{"NEW_KUBELET": binaries.Kubelet, "OLD_KUBELET": binaries.OldKubelet, "OTHER_CONTAINERD": binaries.Containerd} {
		words[word], err = binaries.Version(s.t.Context(), name)
		s.must(err)
	}
	// The kubelet reports the digits alone of what a runtime says.
	words["OTHER_CONTAINERD"] = strings.TrimPrefix(words["OTHER_CONTAINERD"], "v")
	words["DEBIAN_CONTAINERD"] = s.containerdVersion()
	s.stock(words["REPOSITORY"], map[string]string{
		"kubelet/" + words["NEW_KUBELET"] + "/kubelet":                          built[binaries.Kubelet],
		"kubelet/" + words["OLD_KUBELET"] + "/kubelet":                          built[binaries.OldKubelet],
		"containerd/" + words["OTHER_CONTAINERD"] + "/containerd":               built[binaries.Containerd],
		"containerd/" + words["OTHER_CONTAINERD"] + "/containerd-shim-runc-v2":  built[binaries.ContainerdShim],
		"containerd/" + words["DEBIAN_CONTAINERD"] + "/containerd":              s.installed("containerd"),
		"containerd/" + words["DEBIAN_CONTAINERD"] + "/containerd-shim-runc-v2": s.installed("containerd-shim-runc-v2"),
	})
	images := filepath.Join(words["REPOSITORY"], "images")
	s.must(os.MkdirAll(images, 0o700))
	s.must(nodetier.WriteImage(filepath.Join(images, "pause.tar"), nodetier.PauseImage, built[binaries.Pause]))
	words["CNI_PLUGINS"], err = nodetier.PluginDir()
	s.must(err)
	for _, word := range []string{"KUBELET_PORT", "HEALTHZ_PORT"} {
		port, err := s.env.Port()
		s.must(err)
		words[word] = strconv.Itoa(port)
	}
	mark := exec.Command("true")
	s.env.Mark(mark) // whatever happens to this process, the machine ends with the control plane
	words["MARK"] = mark.Env[len(mark.Env)-1]
	words["PROGRAM"], err = os.Executable()
	s.must(err)
	return words
}

// containerdVersion asks Debian's containerd, whose version has more than digits.
func (s *stage) containerdVersion() string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "containerd", "--version").Output()
	s.must(err)
	m := regexp.MustCompile(` v?(\d+\.\d+\.\d+)`).FindSubmatch(out)
	if m == nil {
		s.t.Fatalf("containerd says it is %q, want a version", out)
	}
	return string(m[1])
}

func (s *stage) installed(program string) string {
	s.t.Helper()
	path, err := exec.LookPath(program)
	s.must(err)
	return path
}

func (s *stage) stock(repository string, files map[string]string) {
	s.t.Helper()
	for name, program := range files {
		path := filepath.Join(repository, name)
		s.must(os.MkdirAll(filepath.Dir(path), 0o700))
		s.must(os.Symlink(program, path))
	}
}

// control runs the controllers until the test ends.
func (s *stage) control(objects dynamic.Interface) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	var err error
	s.provider, err = local.New(ctx, local.Options{Root: s.root})
	s.must(err)
	factory := informers.NewSharedInformerFactory(s.core, 0)
	nodes, err := kube.NewNodes(s.core, factory.Core().V1().Nodes().Informer(), nil)
	s.must(err)
	factory.Start(ctx.Done())
	machines, err := kube.NewMachines(objects, s.namespace)
	s.must(err)
	c, err := controller.New(controller.Options{
		Cluster: s.namespace, Machines: machines, Nodes: nodes, Provider: s.provider, Secrets: kube.Secrets{Client: s.core}, Drainer: s.drainer(ctx),
		ControlPlane: servers{s.core}, ShowEvery: time.Second,
	})
	s.must(err)
	ended := make(chan error, 1)
	go func() {
		ended <- kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes, SurveyEvery: 2 * time.Second})
	}()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		if s.t.Failed() {
			s.t.Logf("the end of the machines' consoles:\n%s", s.consoles())
		}
		if err := s.provider.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *stage) drainer(ctx context.Context) controller.Drainer {
	s.t.Helper()
	options := drainkube.CacheOptions{DaemonSets: true}
	factory := drainkube.NewFactory(s.core, options)
	cache, err := drainkube.NewCache(factory, options)
	s.must(err)
	factory.Start(ctx.Done())
	s.must(cache.WaitForSync(ctx))
	client, err := drainkube.NewClientForConfig(s.env.Config(), nil, drainkube.ClientOptions{})
	s.must(err)
	d, err := drain.New(drain.Options{Cache: cache.View(), Client: client})
	s.must(err)
	return eager{&drain.NodeDrainer{Drainer: d, Holder: "machines", Policy: drain.Policy{Settle: ptr.To(500 * time.Millisecond)}}}
}

// eager asks again soon how far a drain is: nothing tells the controller that a pod has gone.
type eager struct{ *drain.NodeDrainer }

func (e eager) Drain(ctx context.Context, node, uid string, attempt int64, force bool) (bool, string, time.Duration, error) {
	empty, blocked, after, err := e.NodeDrainer.Drain(ctx, node, uid, attempt, force)
	const soon = 300 * time.Millisecond
	if after <= 0 || after > soon {
		after = soon
	}
	return empty, blocked, after, err
}

// servers are the API servers that kubelets must fit.
type servers struct{ core kubernetes.Interface }

func (v servers) Skew(_ context.Context, kubelet string) string {
	version, err := v.core.Discovery().ServerVersion()
	if err != nil {
		return err.Error()
	}
	return machine.Skew(version.GitVersion, kubelet)
}

// consoles is what the machines have printed last.
func (s *stage) consoles() string {
	var text strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.root, "machines", "*", "console.log"))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		lines := strings.Split(string(data), "\n")
		text.WriteString(strings.Join(lines[max(0, len(lines)-80):], "\n"))
	}
	return text.String()
}

// manifest is the Machine with these versions.
func (s *stage) manifest(kubelet, name, version string) *unstructured.Unstructured {
	s.t.Helper()
	text, err := os.ReadFile("testdata/machine.yaml")
	s.must(err)
	words := map[string]string{"KUBELET": kubelet, "RUNTIME_NAME": name, "RUNTIME": version}
	filled := os.Expand(string(text), func(word string) string {
		value, ok := words[word]
		if !ok {
			value, ok = s.words[word]
		}
		if !ok {
			s.t.Fatalf("testdata/machine.yaml has the word %q", word)
		}
		return value
	})
	o := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(filled), &o.Object))
	return o
}
