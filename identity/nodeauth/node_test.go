// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/identity/nodeauth"
)

// filled is a value of a type in which every field is set, as JSON.
func filled(t *testing.T, of reflect.Type) any {
	t.Helper()
	v := reflect.New(of).Elem()
	fill(v)
	raw, err := json.Marshal(v.Interface())
	must(t, err)
	var out any
	must(t, json.Unmarshal(raw, &out))
	return out
}

func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("7")))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(1, 0)))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(7)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("Seven")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// jsonName is the name of a field in JSON, empty for an embedded one.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// TestNodeStatusIsClosed covers R-AU-01 and R-AU-08: of its own Node's status an agent changes the conditions that were named, and no other
// field. The fields are those of this client's NodeStatus; one that this server drops is tried all the same.
func TestNodeStatusIsClosed(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.guard(t)
	status := reflect.TypeFor[corev1.NodeStatus]()
	denied := 0
	for i := range status.NumField() {
		name := jsonName(status.Field(i))
		if name == "conditions" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			patch, err := json.Marshal(map[string]any{"status": map[string]any{name: filled(t, status.Field(i).Type)}})
			must(t, err)
			if got := c.changedBy(t, a.node, patch, "status", name); !got {
				t.Logf("this server does not keep it")
				return
			}
			denied++
			c.refuses(t, a, string(patch))
		})
	}
	if denied < 10 {
		t.Errorf("the server keeps %d fields of the status, want 10 at least: the test does not reach it", denied)
	}
}

// changedBy reports whether the server, asked by the administrator, would change a field of the Node by the patch of its status.
func (c *cluster) changedBy(t *testing.T, node *corev1.Node, patch []byte, field ...string) bool {
	t.Helper()
	before, err := c.objects.Resource(nodes).Get(t.Context(), node.Name, metav1.GetOptions{})
	must(t, err)
	after, err := c.objects.Resource(nodes).Patch(t.Context(), node.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry}, "status")
	must(t, err)
	old, _, err := unstructured.NestedFieldNoCopy(before.Object, field...)
	must(t, err)
	found, _, err := unstructured.NestedFieldNoCopy(after.Object, field...)
	must(t, err)
	return !reflect.DeepEqual(old, found)
}

// closed is what the policy says of every other change of a Node.
const closed = "an agent may write the conditions ConfigOK, example.com/Other in the status of its own Node, and nothing else of a Node"

// refuses tries a patch of the status of the agent's own Node.
func (c *cluster) refuses(t *testing.T, a *agent, patch string) {
	t.Helper()
	_, err := a.client.Resource(nodes).Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry}, "status")
	if fault := c.denial(err, closed); fault != "" {
		t.Errorf("%s: %s", patch, fault)
	}
}

// TestNodeMetadataIsClosed covers R-AU-08: the server lets a write of the status change labels, annotations, finalizers and owners too.
func TestNodeMetadataIsClosed(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.guard(t)
	for field, value := range map[string]any{
		"labels":      map[string]any{"node-role.kubernetes.io/control-plane": ""},
		"annotations": map[string]any{"a": "b"}, "finalizers": []any{"example.com/a"},
		"ownerReferences": []any{owner("x", "y")},
	} {
		t.Run(field, func(t *testing.T) {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: value}})
			must(t, err)
			if !c.changedBy(t, a.node, patch, "metadata", field) {
				t.Fatal("the server does not keep it, so that nothing is tried")
			}
			c.refuses(t, a, string(patch))
		})
	}
}

// conditions gives the Node conditions, by the administrator, and returns it.
func (c *cluster) conditions(t *testing.T, node string, types ...corev1.NodeConditionType) *corev1.Node {
	t.Helper()
	n, err := c.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	must(t, err)
	n.Status.Conditions = nil
	for _, kind := range types {
		n.Status.Conditions = append(n.Status.Conditions, condition(kind, "FromOutside"))
	}
	n, err = c.admin.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	must(t, err)
	return n
}

func condition(kind corev1.NodeConditionType, reason string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}
}

// TestNodeConditionsAreThoseNamed covers R-AU-01 and R-AU-08: an agent sets, changes and removes the conditions that were named, by whatever
// patch, and leaves the others as they are and in their order.
func TestNodeConditionsAreThoseNamed(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.guard(t)
	ready, pressure := corev1.NodeReady, corev1.NodeDiskPressure
	set := func(cs ...corev1.NodeCondition) func(n *corev1.Node) {
		return func(n *corev1.Node) { n.Status.Conditions = cs }
	}
	old := func(kind corev1.NodeConditionType) corev1.NodeCondition { return condition(kind, "FromOutside") }
	mine := func(kind corev1.NodeConditionType) corev1.NodeCondition { return condition(kind, "Changed") }
	for _, row := range []struct {
		name   string
		change func(n *corev1.Node)
		ok     bool
	}{
		{"nothing", func(*corev1.Node) {}, true},
		{"its own changed", set(old(ready), old(pressure), mine("ConfigOK")), true},
		{"its own first", set(mine("ConfigOK"), old(ready), old(pressure)), true},
		{"a second of its own", set(old(ready), mine("example.com/Other"), old(pressure), mine("ConfigOK")), true},
		{"its own removed", set(old(ready), old(pressure)), true},
		{"another's changed", set(mine(ready), old(pressure), old("ConfigOK")), false},
		{"another's removed", set(old(ready), old("ConfigOK")), false},
		{"all removed", set(), false},
		{"one of a type that was not named", set(old(ready), old(pressure), mine("NetworkUnavailable")), false},
		{"a type that begins as its own", set(old(ready), old(pressure), mine("ConfigOKToo")), false},
		{"others in another order", set(old(pressure), old(ready)), false},
		{"another's twice", set(old(ready), old(pressure), old(ready)), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := c.conditions(t, a.node.Name, ready, pressure, "ConfigOK")
			row.change(n)
			typed, _ := clients(t, c.config(a.token))
			_, err := typed.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{DryRun: dry})
			switch {
			case row.ok && err != nil:
				t.Errorf("got %v, want it accepted", err)
			case !row.ok && c.denial(err, closed) != "":
				t.Error(c.denial(err, closed))
			}
		})
	}
	n := c.conditions(t, a.node.Name, ready)
	for kind, data := range map[types.PatchType]string{
		types.StrategicMergePatchType: `{"status":{"conditions":[{"type":"ConfigOK","status":"True"}]}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/status/conditions/-","value":{"type":"ConfigOK","status":"True"}}]`,
		types.ApplyPatchType: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + n.Name + `"},` +
			`"status":{"conditions":[{"type":"ConfigOK","status":"True"}]}}`,
	} {
		if _, err := a.client.Resource(nodes).Patch(t.Context(), n.Name, kind, []byte(data), patching(kind), "status"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func patching(kind types.PatchType) metav1.PatchOptions {
	if kind == types.ApplyPatchType {
		return metav1.PatchOptions{FieldManager: "test", Force: ptr.To(true)}
	}
	return metav1.PatchOptions{}
}

// forFutures turns a policy for Nodes on Futures.
func forFutures(t *testing.T, text []byte) []byte {
	t.Helper()
	for _, swap := range []struct {
		times    int
		old, now string
	}{
		{5, `request.resource.resource == 'nodes' \u0026\u0026 request.resource.group == ''`,
			`request.resource.resource == 'futures' \u0026\u0026 request.resource.group == '` + shadows.Group + `'`},
		{1, `"apiGroups":[""],"apiVersions":["*"],"resources":["nodes","nodes/*"]`, `"apiGroups":["` + shadows.Group + `"],"apiVersions":["*"],"resources":["futures","futures/*"]`},
		{1, `variables.oldMetadata.?uid.orValue('') == variables.nodeUID`, `true`},
		{1, `oldObject.metadata.?uid.orValue('') == request.userInfo.extra['authentication.kubernetes.io/node-uid'][0]`, `true`},
	} {
		if n := strings.Count(string(text), swap.old); n != swap.times {
			t.Fatalf("the policy holds %s %d times, want %d:\n%s", swap.old, n, swap.times, text)
		}
		text = []byte(strings.ReplaceAll(string(text), swap.old, swap.now))
	}
	return text
}

// TestFutureFieldsAreClosed covers R-AU-08: a field of the status that no Kubernetes has yet. The policy is turned on a custom resource that takes
// any field; all else in it stays.
func TestFutureFieldsAreClosed(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	objects, err := nodeauth.Objects(c.options)
	must(t, err)
	text, err := json.Marshal(objects[0])
	must(t, err)
	text = forFutures(t, text)
	must(t, json.Unmarshal(text, objects[0]))
	c.create(t, objects[:2]...)
	must(t, c.env.InstallCRDs(t.Context(), []byte(strings.NewReplacer("Shadow", "Future", "shadow", "future").Replace(shadowCRD))))
	futures := shadows
	futures.Resource = "futures"
	future := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": futures.GroupVersion().String(), "kind": "Future", "metadata": map[string]any{"name": a.node.Name},
	}}
	c.create(t, future)
	for _, w := range []struct {
		status  string
		patches map[string]bool
	}{
		{`{"old":"a","nested":{"old":"a"},"conditions":[{"type":"Ready"}]}`, map[string]bool{
			`{"status":{"conditions":[{"type":"Ready"},{"type":"ConfigOK","future":"a"}]}}`: true,
			`{"status":{"future":"a"}}`:                                 false,
			`{"status":{"old":null}}`:                                   false,
			`{"status":{"nested":{"future":"a"}}}`:                      false,
			`{"status":{"nested":{"old":{"old":"a"}}}}`:                 false,
			`{"status":{"conditions":[{"type":"Ready","future":"a"}]}}`: false,
			`{"status":null}`:                                           false,
		}},
		{`{"old":"a","nested":null,"conditions":[{"type":"ConfigOK"}]}`, map[string]bool{
			`{"status":{"conditions":null}}`:              true,
			`{"status":{"conditions":null,"future":"a"}}`: false, // as many fields as before
		}},
	} {
		_, err = c.objects.Resource(futures).Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(`{"status":`+w.status+`}`), metav1.PatchOptions{}, "status")
		must(t, err)
		for patch, ok := range w.patches {
			eventually(t, func() string {
				_, err := a.client.Resource(futures).Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry}, "status")
				switch {
				case ok && err != nil:
					return patch + ": " + err.Error()
				case !ok && c.denial(err, closed) != "":
					return patch + ": " + c.denial(err, closed)
				}
				return ""
			})
		}
	}
}

// TestNodeItselfIsClosed covers R-AU-01 and R-AU-08: an agent with every right that RBAC can give writes nothing of a Node but its status, and
// nothing of another Node.
func TestNodeItselfIsClosed(t *testing.T) {
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.guard(t)
	api, options := a.client.Resource(nodes), metav1.PatchOptions{DryRun: dry}
	node := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}}}
	}
	patch := func(name, data string, subresources ...string) error {
		_, err := api.Patch(t.Context(), name, types.MergePatchType, []byte(data), options, subresources...)
		return err
	}
	create := func(name string) error { _, err := api.Create(t.Context(), node(name), dryCreate); return err }
	only := func(operation, name string) string {
		return fmt.Sprintf(`the agent of node "%s" may not %s nodes, here nodes "%s"; it may CREATE leases`, a.node.Name, operation, name)
	}
	for what, row := range map[string]struct {
		err  error
		says string
	}{
		"taint":                   {patch(a.node.Name, `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`), only("UPDATE", a.node.Name)},
		"cordon":                  {patch(a.node.Name, `{"spec":{"unschedulable":true}}`), only("UPDATE", a.node.Name)},
		"label":                   {patch(a.node.Name, `{"metadata":{"labels":{"a":"b"}}}`), only("UPDATE", a.node.Name)},
		"delete":                  {api.Delete(t.Context(), a.node.Name, metav1.DeleteOptions{DryRun: dry}), only("DELETE", a.node.Name)},
		"delete all":              {api.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{}), "may not DELETE nodes, here nodes"},
		"create":                  {create(c.namespace + "-new"), only("CREATE", c.namespace+"-new")},
		"another's status":        {patch(b.Name, `{}`, "status"), fmt.Sprintf(`nodes "%s" does not belong to node "%s": the name must be "%[2]s"`, b.Name, a.node.Name)},
		"another's itself":        {patch(b.Name, `{}`), only("UPDATE", b.Name)},
		"the status with a label": {patch(a.node.Name, `{"metadata":{"labels":{"a":"b"}}}`, "status"), closed},
	} {
		if fault := c.denial(row.err, row.says); fault != "" {
			t.Errorf("%s: %s", what, fault)
		}
	}
}

// TestNoNodeWriteByDefault covers R-AU-08: without NodeConditions nothing of any Node is written, not even by an agent that RBAC lets.
func TestNoNodeWriteByDefault(t *testing.T) {
	c := newCluster(t)
	c.options.NodeConditions = nil
	a := c.agent(t, "a")
	c.guard(t)
	for says, subresources := range map[string][]string{"may not UPDATE nodes": nil, "may not UPDATE status of nodes": {"status"}} {
		_, err := a.client.Resource(nodes).Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dry}, subresources...)
		if fault := c.denial(err, says); fault != "" {
			t.Errorf("%q: %s", subresources, fault)
		}
	}
}

// TestLargeNodeIsWritten covers R-AU-06: the comparison of a Node with everything that a big one carries stays within the cost that the server allows.
func TestLargeNodeIsWritten(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.guard(t)
	n, err := c.admin.CoreV1().Nodes().Get(t.Context(), a.node.Name, metav1.GetOptions{})
	must(t, err)
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("64")}
	for i := range 500 {
		image := fmt.Sprintf("registry.example.com/team/with/a/long/path/image-%d@sha256:%s", i, strings.Repeat("0f", 32))
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image, image + "-too"}, SizeBytes: int64(i)})
		volume := fmt.Sprintf("kubernetes.io/csi/driver.example.com^volume-%d", i)
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, corev1.UniqueVolumeName(volume))
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(volume), DevicePath: volume})
	}
	for i := range 40 {
		n.Status.Conditions = append(n.Status.Conditions, condition(corev1.NodeConditionType(fmt.Sprintf("Condition%d", i)), strings.Repeat("x", 200)))
	}
	_, err = c.admin.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	must(t, err)
	data := []byte(`{"status":{"conditions":[{"type":"ConfigOK","status":"True"}]}}`)
	_, err = a.client.Resource(nodes).Patch(t.Context(), n.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	must(t, err)
	c.refuses(t, a, `{"status":{"images":[]}}`)
}
