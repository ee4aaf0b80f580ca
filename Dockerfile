# A small image for CPUs: docker build -t dcgst --build-arg TORCH_INDEX=... .
# TORCH_INDEX is PyTorch's index of CPU builds; without it, pip takes the build with CUDA libraries.
FROM python:3.12-slim AS build
ARG TORCH_INDEX=""
WORKDIR /src
COPY . .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir torch ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} \
 && /venv/bin/pip install --no-cache-dir ".[io,big,sql,label]"

FROM python:3.12-slim
COPY --from=build /venv /venv
RUN useradd --create-home --uid 1000 dcgst && mkdir /data && chown dcgst /data
USER dcgst
WORKDIR /data
ENTRYPOINT ["/venv/bin/dcgst"]
