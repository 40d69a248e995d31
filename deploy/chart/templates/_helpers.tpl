{{- define "realizar.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "realizar.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "realizar.labels" -}}
{{ include "realizar.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "realizar.scheme" -}}
{{ if .Values.secrets.tls }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "realizar.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ include "realizar.scheme" .root }}
timeoutSeconds: 5
{{- end }}
