// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// With the garbage collector. The nodes of these tests have no kubelets: they stay as ready as they were made, however long a test takes.
var shared = testenv.Shared{Options: testenv.Options{
	With: []testenv.Component{testenv.ControllerManager},
	Args: map[testenv.Component][]string{testenv.ControllerManager: {"--node-monitor-grace-period=30m"}},
}}

func TestMain(m *testing.M) {
	// The second one pauses after an error, by a time that it keeps for the whole process: after an error in a bubble, whose time is another, an informer
	// of another test would be held up for as long as the two are apart.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // it has no other switch
	os.Exit(shared.Main(m))
}

// configMaps is the client of a namespace of the test's own.
func configMaps(t *testing.T, namespace string) typed.ConfigMapInterface {
	t.Helper()
	config := *shared.Env(t).Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return client.CoreV1().ConfigMaps(namespace)
}

// R-RO-01: the ledger on a real API server.
func TestConfigMapLedger(t *testing.T) {
	client := configMaps(t, "ledgers")
	rollouttest.TestLedgers(t, func(_ *testing.T, domain string) rollout.LedgerStore {
		return must1(kube.NewConfigMapLedger(client, domain))
	})
}

// What others have put on the object stays, and a deletion waits for the finalizer.
func TestLedgerLeavesTheRestAlone(t *testing.T) {
	client := configMaps(t, "others")
	l := must1(kube.NewConfigMapLedger(client, "domain"))
	version, err := l.Store(t.Context(), protocol.Ledger{}, "")
	if err != nil {
		t.Fatal(err)
	}
	object := get(t, client)
	object.Labels, object.Data["note"] = map[string]string{"a": "b"}, "kept"
	if object, err = client.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Store(t.Context(), protocol.Ledger{Epoch: 1}, version); err == nil {
		t.Error("Store over the version before: got no error, want a conflict")
	}
	if _, err := must1(kube.NewConfigMapLedger(client, "domain")).Store(t.Context(), protocol.Ledger{Epoch: 2}, object.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), "domain", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if o := get(t, client); o.Labels["a"] != "b" || o.Data["note"] != "kept" || o.Finalizers[0] != "rollout.belay.dev/ledger" {
		t.Errorf("got labels %v, data %v, finalizers %v, want them kept and the object there after its deletion", o.Labels, o.Data, o.Finalizers)
	}
}

func get(t *testing.T, client typed.ConfigMapInterface) *corev1.ConfigMap {
	t.Helper()
	object, err := client.Get(t.Context(), "domain", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// What is not a ledger is never taken for an empty one.
func TestWhatIsNoLedger(t *testing.T) {
	client := configMaps(t, "broken")
	for _, c := range []struct{ name, key, text, want string }{
		{"no-key", "other", "{}", `no key "ledger.json"`},
		{"no-json", "ledger.json", "epoch: 1", "invalid character"},
		{"unknown", "ledger.json", `{"epoch":1,"maxima":{}}`, `unknown field "maxima"`},
		{"two", "ledger.json", `{"epoch":1}{}`, "more than one"},
		{"wrong", "ledger.json", `{"epoch":1,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":2}]}`, "slots[0]: attempt is 2, want 1 to 1"},
		{"double", "ledger.json", `{"epoch":2,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1},{"node":"b","uid":"u","rollout":"r","attempt":2}]}`, "same uid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			create(t.Context(), t, client, c.name, map[string]string{c.key: c.text})
			l, _, err := must1(kube.NewConfigMapLedger(client, c.name)).Load(t.Context())
			if !errors.Is(err, rollout.ErrUnreadable) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("Load: got %+v, %v, want ErrUnreadable with %q and the object's name", l, err, c.want)
			}
		})
	}
}

func create(ctx context.Context, t *testing.T, client typed.ConfigMapInterface, name string, data map[string]string) {
	t.Helper()
	if _, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
