"""What S1's rules scorer knows of the world: fields, tools, and words that tell how risky work is.

Data only. Trigger words that Sir may edit are in the policy; these are the scorer's own.
Source: DESIGN section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestration.trigger_words import words


def _table(**lines: str) -> Mapping[str, tuple[str, ...]]:
    """Make a read-only table of names and their words."""
    return MappingProxyType({name: words(line) for name, line in lines.items()})


DOMAINS = _table(
    frontend="前端, 网页, 页面, 界面, 组件, frontend, front end, web page, css, html, react, vue",
    backend="后端, 接口, 微服务, 服务端, backend, back end, api, microservice, endpoint, server",
    mobile="移动端, 安卓, 小程序, 手机端, mobile, android, ios, mini program",
    database="数据库, 数据表, 索引, crud, database, sql, schema, postgresql"
    ", postgres, mysql, redis",
    data="数据采集, 数据分析, 数据仓库, 销售数据, 报表, 统计, 指标, 特征工程, 数据清洗, 可视化, etl"
    ", data warehouse, data pipeline, dashboard, metrics, statistics, dataset, spreadsheet",
    machine_learning="模型训练, 机器学习, 深度学习, 推荐系统, 大模型, 神经网络, 向量"
    ", machine learning, deep learning, model training, recommender, neural network, llm"
    ", embedding",
    operations="部署, 运维, 监控, 日志, 集群, 容器, 服务器, 高可用, 上线, deployment, deploy, ci"
    ", cluster, container, monitoring, infrastructure, devops, kubernetes, downtime, uptime",
    security="认证, 鉴权, 权限, 登录, 安全, 加密, 漏洞, 单点登录, authentication, authorization"
    ", login, security, encryption, vulnerability, oauth, sso, permission",
    payment="支付, 结算, 对账, 退款, 账单, 发票, payment, billing, checkout, invoice, refund",
    finance="财务, 预算, 交易, 投资, 股票, 审计报告, 税务, finance, budget, trading"
    ", investment, tax",
    commerce="电商, 商城, 订单, 商品, 库存, 购物车, 销售, e-commerce, ecommerce, orders, inventory"
    ", shop, cart, sales, product catalogue, product catalog, marketplace, pricing",
    marketing="营销, 市场, 竞品, 推广, 品牌, 用户增长, marketing, market, competitor"
    ", campaign, seo",
    writing="文档, 报告, 文章, 论文, 手册, 文案, 博客, report, article, documentation, manual"
    ", essay, blog, readme, newsletter, whitepaper",
    legal="合同, 法律, 合规, 隐私政策, contract, legal, compliance, gdpr, privacy policy, licence",
    medical="医疗, 临床, 病历, 诊断, medical, clinical, patient, diagnosis",
    people="招聘, 培训, 绩效, 面试, hiring, recruitment, onboarding, interview",
    events="会议, 活动, 行程, 旅行, 年会, conference, event, trip, travel, workshop",
    testing="单元测试, 集成测试, 测试用例, 回归测试, unit test, integration test"
    ", test suite, tests",
    hardware="硬件, 嵌入式, 固件, 传感器, hardware, embedded, firmware, sensor",
)
"""Fields of knowledge and the words that name them."""

EXPERT = words(
    "密码学, 编译器, 内核, 共识算法, 一致性协议, 形式化验证, 量化交易, 医疗诊断, 法律意见, 芯片",
    "cryptography, compiler, kernel, consensus protocol, formal verification, quantum",
    "quantitative trading, legal opinion, clinical trial, chip design",
)
"""Fields that need an expert whatever else is asked."""

TOOLS = words(
    "python, java, golang, rust, typescript, javascript, node, react, vue, angular, django, flask",
    "fastapi, spring boot, docker, kubernetes, k8s, helm, terraform, ansible, jenkins, nginx",
    "mysql, postgresql, postgres, sqlite, redis, mongodb, elasticsearch, kafka, rabbitmq, celery",
    "spark, hadoop, airflow, snowflake, bigquery, tensorflow, pytorch, aws, gcp, azure, github",
    "github actions, gitlab, jira, confluence, slack, figma, excel, powerpoint, ppt",
    "stripe, paypal, salesforce, sap, tableau, grafana, prometheus, s3, lambda, graphql, grpc",
    "数据库, 微信, 支付宝, 钉钉, 飞书, 企业微信, 小程序, 邮件, email, crud, latex, bash, git, ci",
)
"""Tools and systems by name."""

MANY_SYSTEMS = words(
    "多系统, 跨系统, 多个系统, 跨平台, 多平台, 各个系统, multiple systems, several systems",
    "cross-platform, across systems, third-party systems",
)
INTEGRATION = words(
    "对接, 集成, 接入, 打通, 联调, 同步到, integrate, integration, connect, sync, hook up"
)
"""Work that joins one system to another."""

BUILD_VERBS = words(
    "开发, 构建, 设计, 迁移, 重构, 实现, 搭建, 创建, 改造, 重写",
    "develop, build, design, migrate, refactor, implement, set up, create, rewrite",
)
"""Verbs whose work has steps that nobody lists: to plan it, to make it, to check it."""

SYSTEM_NOUNS = words(
    "平台, 网站, 商城, 小程序, 应用程序, 后台, 中台, 引擎, platform, website, web site, web app",
    "application, saas, marketplace, app, backend, infrastructure, pipeline, engine",
)
"""Things that are built of several parts, beside the scope words of the policy."""

FROM_SCRATCH = words("从零, 从头, 白手起家, 全新, from scratch, from zero, greenfield, brand new")

SEQUENCE = words(
    "首先, 其次, 然后, 接着, 随后, 最后, 最终, 第一步, 第二步, 第三步, 第四步, 第五步, 第六步",
    "first, firstly, second, secondly, third, thirdly, then, next, after that, finally, lastly",
)
"""Words that start a step, counted where the text has steps at all."""

RESEARCH = words(
    "调研, 研究, 探索, 摸索, 可行性, 评估方案, 选型, 未知, 前沿, research, investigate, explore",
    "feasibility, prototype, proof of concept, unknown, evaluate options, novel",
)
INQUIRY = words(
    "分析, 排查, 定位, 诊断, 为什么, 瓶颈, 优化, analyse, analyze, debug, diagnose, troubleshoot",
    "root cause, bottleneck, why, optimise, optimize",
)
"""Work that has to look for something before it knows what to do."""

COSTS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        2: words("配置, 接口, 公开, config, configuration, public api, shared, customers, 客户"),
        3: words(
            "支付, 结算, 退款, 认证, 鉴权, 权限, 用户数据, 隐私, 合同, 数据库, 部署, 发布, 上线",
            "升级, payment, billing, refund, authentication, authorization, permission",
            "personal data, contract, database, deploy, release, publish, upgrade, legal, security",
        ),
        4: words(
            "停机, 零停机, 数据迁移, 迁移, 线上, 正式环境, 全量, 财务, 资金, 法律, 医疗, migrate",
            "migration, downtime, money, financial, medical, mass email, all users, 所有用户",
        ),
        5: words(
            "不可逆, 无法恢复, 不能回滚, 永久, 生产环境, 实盘, 删库, irreversible, irrevocable",
            "cannot be undone, no rollback, permanently, production environment",
            "production database, to production, in production, real money, live trading",
        ),
    }
)
"""What a failure would cost: words of each level above the first."""
