// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"path"
	"slices"
	"strings"
)

// An allowance says what one package, or every package below it, may import besides the standard library and what the
// rules about the module's own packages let through.
type allowance struct {
	packages string   // a path inside the module; a trailing "/..." takes in what is below it; the longest match wins
	modules  []string // import path prefixes of other modules
	internal bool     // may import the module's internal packages
	why      string
}

// Why each of the shared lists is as short as it is.
const (
	whyRoot    = "the root package is documentation: importing it must cost nothing"
	whyLeaf    = "a leaf is used in kubelets and rescue tools that cannot carry a dependency: standard library, golang.org/x/sys, and internal packages that import no more"
	whyCore    = "the core of configsync is a leaf; the gate before the decoder needs a YAML parser, nothing else"
	whyRing    = "the Kubernetes ring goes with every embedder's client-go; each further module would bind their versions"
	whySystemd = "restarts of units go over D-Bus, for those alone who import the package"
	whyMain    = "examples are a module of programs: component-base with the collectors that its registries take, the kubelet's config types and cobra are for them alone"
	whyManager = "the example of a controller-runtime manager is a module of its own: other embedders do not get it"
	whyMetrics = "the collectors of Prometheus are a module of their own, so that the library requires no Prometheus"
	whyTool    = "the rules must build and run before anything else does"
	whyTest    = "internal packages that have no line of their own serve tests and take what the library already requires"
)

// allowances is the dependency budget. A new import of another module needs a line here, with its reason.
var allowances = []allowance{
	{packages: ".", why: whyRoot},

	{packages: "checkpoint/...", modules: leafModules, why: whyLeaf},
	{packages: "lkg/...", modules: leafModules, why: whyLeaf},
	{packages: "machine", modules: leafModules, why: whyLeaf},
	{packages: "machine/etcd", modules: leafModules, why: whyLeaf},
	{packages: "machine/machinetest", modules: leafModules, why: whyLeaf},
	{packages: "configsync", modules: coreModules, why: whyCore},
	{packages: "configsync/configsynctest", modules: coreModules, why: whyCore},
	{packages: "configsync/file", modules: coreModules, why: whyCore},
	{packages: "configsync/restart", modules: coreModules, why: whyCore},
	{packages: "configsync/restart/systemd", modules: systemdModules, why: whySystemd},

	{packages: "configsync/...", modules: ringModules, internal: true, why: whyRing},
	{packages: "identity/...", modules: ringModules, internal: true, why: whyRing},
	{packages: "drain/...", modules: ringModules, internal: true, why: whyRing},
	{packages: "rollout/...", modules: ringModules, internal: true, why: whyRing},
	{packages: "machine/...", modules: ringModules, internal: true, why: whyRing},

	{packages: "examples/...", modules: mainModules, why: whyMain},
	{packages: "examples/manager/...", modules: managerModules, why: whyManager},
	{packages: "examples/metrics/...", modules: metricsModules, why: whyMetrics},
	{packages: "internal/watch", modules: ringModules, why: whyRing},
	{packages: "internal/archtest/...", internal: true, why: whyTool},
	{packages: "internal/...", modules: serverModules, internal: true, why: whyTest},
}

var (
	leafModules    = []string{"golang.org/x/sys"}
	coreModules    = []string{"golang.org/x/sys", "sigs.k8s.io/yaml", "go.yaml.in/yaml/v3"}
	systemdModules = []string{"golang.org/x/sys", "github.com/coreos/go-systemd/v22"}
	ringModules    = []string{
		"golang.org/x/sys", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "k8s.io/klog/v2",
	}
	serverModules = []string{
		"golang.org/x/sys", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "k8s.io/klog/v2", "sigs.k8s.io/yaml",
	}
	mainModules = []string{
		"golang.org/x/sys", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "k8s.io/klog/v2",
		"golang.org/x/sync", "sigs.k8s.io/yaml", "k8s.io/component-base", "k8s.io/cli-runtime",
		"k8s.io/kubelet", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term",
		"github.com/prometheus/client_golang",
	}
	managerModules = []string{
		"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "sigs.k8s.io/controller-runtime",
		"github.com/prometheus/client_golang",
	}
	metricsModules = []string{"github.com/prometheus/client_golang"}
	// testModules are direct requirements that only tests import.
	testModules = []string{"github.com/google/go-cmp"}
)

// heavy are the modules that no package for users may reach, not even through another module.
var heavy = []string{"sigs.k8s.io/controller-runtime", "k8s.io/kubectl", "github.com/prometheus", "k8s.io/component-base"}

// crossings are the root packages that may import another root package.
var crossings = map[string]string{"configsync": "lkg"}

// publicRoots are the top-level packages that users import.
var publicRoots = []string{"checkpoint", "lkg", "configsync", "identity", "drain", "rollout", "machine"}

func allowanceFor(rel string) (allowance, bool) {
	var best allowance
	found := -1
	for _, a := range allowances {
		dir, tree := strings.CutSuffix(a.packages, "/...")
		length := 2 * len(dir)
		if !tree {
			length++ // before the tree below the same directory
		}
		if match := dir == display(rel) || tree && within(rel, dir); match && length > found {
			best, found = a, length
		}
	}
	return best, found >= 0
}

func (a allowance) allows(importPath string) bool {
	return slices.ContainsFunc(a.modules, func(m string) bool { return within(importPath, m) })
}

// within reports whether a path is dir or below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// rootOf gives the first element of a path inside the module.
func rootOf(rel string) string {
	first, _, _ := strings.Cut(rel, "/")
	return first
}

// mayHoldPackages reports whether a directory of the module root may hold Go packages.
func mayHoldPackages(root string) bool {
	return root == "." || root == "examples" || root == "internal" || isPublicRoot(root)
}

func isPublicRoot(root string) bool { return slices.Contains(publicRoots, root) }

// isKit reports whether a package is a test kit: checkpoint/checkpointtest, identity/nodeauth/nodeauthtest.
func isKit(rel string) bool {
	return strings.Contains(rel, "/") && path.Base(rel) == path.Base(path.Dir(rel))+"test"
}

func isInternal(rel string) bool { return slices.Contains(strings.Split(rel, "/"), "internal") }

// IsPublic reports whether users may import a package, by its path inside the module. Test kits are public.
func IsPublic(rel string) bool { return isPublicRoot(rootOf(rel)) && !isInternal(rel) }

// IsKit reports whether a package is a test kit.
func IsKit(rel string) bool { return isKit(rel) }

// IsVersioned reports whether a package holds the types of an API group's version, which follow the conventions of Kubernetes.
func IsVersioned(rel string) bool { return path.Base(rel) == "v1alpha1" }
