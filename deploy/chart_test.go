// Package deploy_test checks what deploy holds for clusters: the chart, the dashboard and the alerts.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/realizar/realizar/internal/longtest"
)

var update = flag.Bool("update", false, "write what the chart renders to testdata")

// helm runs helm, or skips the test where long tests are not wanted and helm is missing.
func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("helm"); err != nil && !longtest.Wanted() {
		t.Skip("helm is not installed: go install helm.sh/helm/v3/cmd/helm@v3.22.0")
	}
	cmd := exec.CommandContext(t.Context(), "helm", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return out
}

func render(t *testing.T, values string) []byte {
	t.Helper()
	return helm(t, "template", "release", "chart", "--namespace", "models", "--kube-version", "1.37.0", "--values", values)
}

// The chart is well formed, and renders what was reviewed: run go test ./deploy -update after a
// change, and look at the difference.
func TestChart(t *testing.T) {
	helm(t, "lint", "--strict", "chart")
	for _, values := range valueFiles(t) {
		got := render(t, values)
		golden := strings.TrimSuffix(values, ".values.yaml") + ".golden.yaml"
		if *update {
			if err := os.WriteFile(golden, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s renders something other than %s", values, golden)
		}
	}
}

func valueFiles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(all) == 0 {
		t.Fatal("there are no values", err)
	}
	return all
}

// The modules that hold the schemas of what the chart renders.
const (
	kubernetes = "k8s.io/kubernetes@v1.37.2"
	gateway    = "sigs.k8s.io/gateway-api@v1.5.0"
	inference  = "sigs.k8s.io/gateway-api-inference-extension@v1.5.0"
	operator   = "github.com/prometheus-operator/prometheus-operator@v0.88.0"
	keda       = "github.com/kedacore/keda/v2@v2.18.3"
)

// schemas are those of each kind: a module, a file in it, and in a document of OpenAPI the name.
var schemas = map[string][3]string{
	"v1 ConfigMap":                           {kubernetes, "api/openapi-spec/v3/api__v1_openapi.json", "io.k8s.api.core.v1.ConfigMap"},
	"v1 Service":                             {kubernetes, "api/openapi-spec/v3/api__v1_openapi.json", "io.k8s.api.core.v1.Service"},
	"v1 ServiceAccount":                      {kubernetes, "api/openapi-spec/v3/api__v1_openapi.json", "io.k8s.api.core.v1.ServiceAccount"},
	"v1 PersistentVolumeClaim":               {kubernetes, "api/openapi-spec/v3/api__v1_openapi.json", "io.k8s.api.core.v1.PersistentVolumeClaim"},
	"apps/v1 Deployment":                     {kubernetes, "api/openapi-spec/v3/apis__apps__v1_openapi.json", "io.k8s.api.apps.v1.Deployment"},
	"policy/v1 PodDisruptionBudget":          {kubernetes, "api/openapi-spec/v3/apis__policy__v1_openapi.json", "io.k8s.api.policy.v1.PodDisruptionBudget"},
	"networking.k8s.io/v1 NetworkPolicy":     {kubernetes, "api/openapi-spec/v3/apis__networking.k8s.io__v1_openapi.json", "io.k8s.api.networking.v1.NetworkPolicy"},
	"autoscaling/v2 HorizontalPodAutoscaler": {kubernetes, "api/openapi-spec/v3/apis__autoscaling__v2_openapi.json", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"},

	"gateway.networking.k8s.io/v1 HTTPRoute":       {gateway, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"},
	"inference.networking.k8s.io/v1 InferencePool": {inference, "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml"},
	"monitoring.coreos.com/v1 ServiceMonitor":      {operator, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"},
	"keda.sh/v1alpha1 ScaledObject":                {keda, "config/crd/bases/keda.sh_scaledobjects.yaml"},
}

// Every object that the chart renders fits the schema of its kind, in which unknown fields are
// errors. The schemas are those of the projects' own modules.
func TestChartFitsTheSchemas(t *testing.T) {
	if !longtest.Wanted() {
		t.Skip("it fetches the schemas: set REALIZAR_LONG=1")
	}
	missing := maps.Clone(schemas)
	for _, values := range valueFiles(t) {
		for object := range documents(t, render(t, values)) {
			kind := fmt.Sprint(object["apiVersion"], " ", object["kind"])
			at, ok := schemas[kind]
			if !ok {
				t.Errorf("%s renders %s, for which there is no schema", values, kind)
				continue
			}
			delete(missing, kind)
			if err := schemaOf(t, at, fmt.Sprint(object["apiVersion"])).Validate(object); err != nil {
				t.Errorf("%s: %s: %v", values, kind, err)
			}
		}
	}
	for kind := range missing {
		t.Errorf("nothing renders %s", kind)
	}
}

// Unknown fields and wrong types are errors.
func TestSchemasAreStrict(t *testing.T) {
	if !longtest.Wanted() {
		t.Skip("it fetches the schemas: set REALIZAR_LONG=1")
	}
	for kind, text := range map[string]string{
		"apps/v1 Deployment":                           "{spec: {selector: {}, template: {spec: {containers: [{name: a, imaeg: b}]}}}}",
		"inference.networking.k8s.io/v1 InferencePool": "{spec: {selector: {matchLabels: {a: b}}, targetPorts: [{number: eighty}], endpointPickerRef: {name: e, port: {number: 1}}}}",
		"keda.sh/v1alpha1 ScaledObject":                "{spec: {scaleTargetRef: {name: a}, trigers: []}}",
	} {
		version, _, _ := strings.Cut(kind, " ")
		for object := range documents(t, []byte(text)) {
			if err := schemaOf(t, schemas[kind], version).Validate(object); err == nil {
				t.Errorf("%s %s fits the schema", kind, text)
			}
		}
	}
}

// documents returns the objects of YAML, as encoding/json has them.
func documents(t *testing.T, text []byte) func(yield func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		d := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if object, ok := asJSON(t, v).(map[string]any); ok && !yield(object) {
				return
			}
		}
	}
}

func asJSON(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// schemaOf compiles a schema. Of a CRD it is that of the version in apiVersion.
func schemaOf(t *testing.T, at [3]string, apiVersion string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module(t, at[0]), at[1]))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	var document any
	fragment := "#/components/schemas/" + at[2]
	if at[2] != "" {
		if document, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	} else {
		fragment = "#"
		for object := range documents(t, text) {
			if object["kind"] != "CustomResourceDefinition" {
				continue
			}
			for _, v := range object["spec"].(map[string]any)["versions"].([]any) {
				if version := v.(map[string]any); strings.HasSuffix(apiVersion, "/"+version["name"].(string)) {
					document = version["schema"].(map[string]any)["openAPIV3Schema"]
				}
			}
		}
	}
	strict(document)
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json" + fragment)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// strict makes fields that a schema does not name an error, as Kubernetes does where an object is
// written with strict validation. The metadata of objects, which CRDs leave to Kubernetes, may have
// any.
func strict(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			strict(item)
		}
	case map[string]any:
		for _, item := range v {
			strict(item)
		}
		_, named := v["properties"].(map[string]any)
		if _, given := v["additionalProperties"]; named && !given && v["x-kubernetes-preserve-unknown-fields"] != true {
			v["additionalProperties"] = false
		}
		if v["x-kubernetes-int-or-string"] == true {
			delete(v, "type")
		}
	}
}

var modules = map[string]string{}

// module returns the folder of a module, which it fetches if needed.
func module(t *testing.T, path string) string {
	t.Helper()
	if modules[path] == "" {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path)
		cmd.Dir = t.TempDir() // outside of our module
		out, err := cmd.Output()
		var m struct{ Dir, Error string }
		if jsonErr := json.Unmarshal(out, &m); err != nil || jsonErr != nil || m.Dir == "" {
			t.Fatalf("%s: %v, %v, %s", path, err, jsonErr, m.Error)
		}
		modules[path] = m.Dir
	}
	return modules[path]
}
